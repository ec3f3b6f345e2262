import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Entries of access control lists and questions, as Kafka's StandardAuthorizer answers them. */
final class AclCommands {
    void register(Map<String, LogOracle.Command> commands) {
        commands.put("acl_decide", this::decide);
    }

    private Object decide(Args args) throws Exception {
        try (StandardAuthorizer authorizer = new StandardAuthorizer(); Metrics metrics = new Metrics()) {
            Map<String, Object> settings = new HashMap<>(args.textMap("settings"));
            settings.put("node.id", "1");
            authorizer.configure(settings);
            authorizer.withPluginMetrics(new PluginMetricsImpl(metrics, new LinkedHashMap<>()));
            Map<Uuid, StandardAcl> acls = new HashMap<>();
            for (Args one : args.list("acls"))
                acls.put(Uuid.randomUuid(), acl(one));
            authorizer.loadSnapshot(acls);
            authorizer.completeInitialLoad();
            List<Boolean> answers = new ArrayList<>();
            for (Args one : args.list("questions"))
                answers.add(answer(authorizer, one) == AuthorizationResult.ALLOWED);
            return answers;
        }
    }

    private static StandardAcl acl(Args one) {
        return new StandardAcl(
            ResourceType.fromCode((byte) one.integer("resource")),
            one.text("name"),
            PatternType.fromCode((byte) one.integer("pattern")),
            one.text("principal"),
            one.text("host"),
            AclOperation.fromCode((byte) one.integer("operation")),
            AclPermissionType.fromCode((byte) one.integer("permission")));
    }

    /** Without a name: whether there may be some resource of that kind. */
    private static AuthorizationResult answer(StandardAuthorizer authorizer, Args one) throws Exception {
        AuthorizableRequestContext client = client(one.text("principal"), one.text("host"));
        AclOperation operation = AclOperation.fromCode((byte) one.integer("operation"));
        ResourceType resource = ResourceType.fromCode((byte) one.integer("resource"));
        if (!one.has("name"))
            return authorizer.authorizeByResourceType(client, operation, resource);
        ResourcePattern pattern = new ResourcePattern(resource, one.text("name"), PatternType.LITERAL);
        return authorizer.authorize(client, List.of(new Action(operation, pattern, 1, false, false))).get(0);
    }

    private static AuthorizableRequestContext client(String principal, String host) throws Exception {
        KafkaPrincipal who = SecurityUtils.parseKafkaPrincipal(principal);
        InetAddress address = InetAddress.getByName(host);
        return new AuthorizableRequestContext() {
            @Override
            public String listenerName() {
                return "PLAINTEXT";
            }

            @Override
            public SecurityProtocol securityProtocol() {
                return SecurityProtocol.PLAINTEXT;
            }

            @Override
            public KafkaPrincipal principal() {
                return who;
            }

            @Override
            public InetAddress clientAddress() {
                return address;
            }

            @Override
            public int requestType() {
                return 3;
            }

            @Override
            public int requestVersion() {
                return 12;
            }

            @Override
            public String clientId() {
                return "";
            }

            @Override
            public int correlationId() {
                return 1;
            }
        };
    }
}
