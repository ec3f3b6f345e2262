import kafka.server.ClientRequestQuotaManager;
import kafka.server.ReplicationQuotaManager;

import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.config.ReplicationQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Commands on Kafka's quota managers: set a quota, record what a client used, ask how long it is throttled. */
final class QuotaCommands {
    private static final String DEFAULT = "<default>";

    private final ManualTime time;
    private final Map<Integer, ClientQuotaManager> managers = new HashMap<>();
    private final Map<Integer, ReplicationQuotaManager> replication = new HashMap<>();
    private int last = 0;

    QuotaCommands(ManualTime time) {
        this.time = time;
    }

    void register(Map<String, LogOracle.Command> commands) {
        commands.put("quota_open", this::open);
        commands.put("quota_set", this::set);
        commands.put("quota_record", this::record);
        commands.put("quota_take_back", this::takeBack);
        commands.put("quota_most", this::most);
        commands.put("quota_charge", this::charge);
        commands.put("quota_close", this::close);
        commands.put("replication_quota_open", this::openReplication);
        commands.put("replication_quota_record", this::recordReplication);
        commands.put("replication_quota_close", this::closeReplication);
    }

    private Object open(Args args) {
        ClientQuotaManagerConfig config =
            new ClientQuotaManagerConfig(args.integer("samples"), args.integer("window_s"));
        Metrics metrics = new Metrics(time);
        ClientQuotaManager made;
        switch (args.text("kind")) {
            case "producer_byte_rate":
                made = new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, time, "");
                break;
            case "request_percentage":
                made = new ClientRequestQuotaManager(config, metrics, time, "", Optional.empty());
                break;
            case "controller_mutation_rate":
                made = new ControllerMutationQuotaManager(config, metrics, time, "", Optional.empty());
                break;
            default:
                throw new IllegalArgumentException("no quota " + args.text("kind"));
        }
        managers.put(++last, made);
        return last;
    }

    private Object openReplication(Args args) {
        ReplicationQuotaManager made = new ReplicationQuotaManager(
            new ReplicationQuotaManagerConfig(args.integer("samples"), args.integer("window_s")),
            new Metrics(time), QuotaType.LEADER_REPLICATION, time);
        made.updateQuota(Quota.upperBound(args.real("limit", 0)));
        replication.put(++last, made);
        return last;
    }

    /** Whether it is exceeded before and after some bytes. */
    private Object recordReplication(Args args) {
        ReplicationQuotaManager manager = replication.get(args.integer("manager"));
        boolean before = manager.isQuotaExceeded();
        manager.record(args.integer("size"));
        return List.of(before, manager.isQuotaExceeded());
    }

    private Object closeReplication(Args args) {
        replication.remove(args.integer("manager"));
        return null;
    }

    private ClientQuotaManager manager(Args args) {
        return managers.get(args.integer("manager"));
    }

    private static Session session(Args args) {
        KafkaPrincipal principal = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, args.text("user"));
        return new Session(principal, InetAddress.getLoopbackAddress());
    }

    private Object set(Args args) {
        Optional<ConfigEntity> user = Optional.empty();
        Optional<ConfigEntity> clientId = Optional.empty();
        if (args.has("user"))
            user = Optional.of(args.text("user").equals(DEFAULT)
                ? ClientQuotaManager.DEFAULT_USER_ENTITY : new ClientQuotaManager.UserEntity(args.text("user")));
        if (args.has("client_id"))
            clientId = Optional.of(args.text("client_id").equals(DEFAULT)
                ? ClientQuotaManager.DEFAULT_USER_CLIENT_ID
                : new ClientQuotaManager.ClientIdEntity(args.text("client_id")));
        Optional<Quota> quota =
            args.has("limit") ? Optional.of(Quota.upperBound(args.real("limit", 0))) : Optional.empty();
        manager(args).updateQuota(user, clientId, quota);
        return null;
    }

    private Object record(Args args) {
        return manager(args).maybeRecordAndGetThrottleTimeMs(
            session(args), args.text("client_id"), args.real("value", 0), time.milliseconds());
    }

    private Object takeBack(Args args) {
        manager(args).unrecordQuotaSensor(
            session(args), args.text("client_id"), args.real("value", 0), time.milliseconds());
        return null;
    }

    private Object most(Args args) {
        return (int) manager(args).maxValueInQuotaWindow(session(args), args.text("client_id"));
    }

    private Object charge(Args args) {
        ControllerMutationQuotaManager manager = (ControllerMutationQuotaManager) manager(args);
        ControllerMutationQuota quota = args.flag("strict", true)
            ? manager.newStrictQuotaFor(session(args), args.text("client_id"))
            : manager.newPermissiveQuotaFor(session(args), args.text("client_id"));
        List<Boolean> refused = new ArrayList<>();
        for (long partitions : args.numbers("partitions")) {
            try {
                quota.record(partitions);
                refused.add(false);
            } catch (ThrottlingQuotaExceededException exceeded) {
                refused.add(true);
            }
        }
        return Map.of("refused", refused, "throttle_ms", quota.throttleTime());
    }

    private Object close(Args args) {
        managers.remove(args.integer("manager")).initiateShutdown();
        return null;
    }
}
