import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecordJsonConverter;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Kafka's own replica placement and partition changes. One JSON object a line asks, one line answers:
 *
 *   {"place": {"seed", "partitions", "replicas", "brokers": [[id, rack or null, fenced], ...]}}  ->  [[ids], ...]
 *   {"change": {...}}                                                                            ->  a record or null
 */
public class ControllerOracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Uuid TOPIC = new Uuid(7, 7);

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode asked = JSON.readTree(line);
            try {
                Object answer = asked.has("place") ? place(asked.get("place")) : change(asked.get("change"));
                out.println(JSON.writeValueAsString(answer));
            } catch (Exception failure) {
                out.println(JSON.writeValueAsString(failure.getClass().getSimpleName()));
            }
        }
        out.flush();
    }

    static Object place(JsonNode asked) {
        List<UsableBroker> brokers = new ArrayList<>();
        for (JsonNode one : asked.get("brokers"))
            brokers.add(new UsableBroker(one.get(0).asInt(), Optional.ofNullable(one.get(1).textValue()), one.get(2).asBoolean()));
        ClusterDescriber cluster = new ClusterDescriber() {
            public Iterator<UsableBroker> usableBrokers() {
                return brokers.iterator();
            }

            public Uuid defaultDir(int broker) {
                return new Uuid(1, broker);
            }
        };
        PlacementSpec wanted = new PlacementSpec(0, asked.get("partitions").asInt(), (short) asked.get("replicas").asInt());
        List<Object> placed = new ArrayList<>();
        for (PartitionAssignment one : new StripedReplicaPlacer(new Random(asked.get("seed").asLong())).place(wanted, cluster).assignments())
            placed.add(one.replicas());
        return placed;
    }

    static Object change(JsonNode asked) {
        JsonNode before = asked.get("partition");
        int[] replicas = ints(before.get("replicas"));
        Uuid[] directories = new Uuid[replicas.length];
        for (int i = 0; i < replicas.length; i++)
            directories[i] = new Uuid(2, replicas[i]);
        PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(replicas).setDirectories(directories).setIsr(ints(before.get("isr")))
            .setLeader(before.get("leader").asInt()).setLeaderEpoch(5).setPartitionEpoch(6)
            .setLeaderRecoveryState(LeaderRecoveryState.of((byte) before.get("recovery").asInt()))
            .setRemovingReplicas(ints(before.get("removing"))).setAddingReplicas(ints(before.get("adding")))
            .setElr(ints(before.get("elr"))).setLastKnownElr(ints(before.get("last_known_elr"))).build();
        Set<Integer> acceptable = new HashSet<>(list(asked.get("acceptable")));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            partition, TOPIC, 3, acceptable::contains, MetadataVersion.fromFeatureLevel((short) asked.get("version").asInt()),
            asked.get("min_isr").asInt(), asked.get("elr").asBoolean());
        builder.setElection(PartitionChangeBuilder.Election.valueOf(asked.get("election").asText().toUpperCase()));
        builder.setDefaultDirProvider(broker -> new Uuid(1, broker));
        if (asked.has("target_isr"))
            builder.setTargetIsr(list(asked.get("target_isr")));
        if (asked.has("target_replicas"))
            builder.setTargetReplicas(list(asked.get("target_replicas")));
        if (asked.has("target_removing"))
            builder.setTargetRemoving(list(asked.get("target_removing")));
        if (asked.has("target_adding"))
            builder.setTargetAdding(list(asked.get("target_adding")));
        if (asked.has("stopped_uncleanly"))
            builder.setUncleanShutdownReplicas(list(asked.get("stopped_uncleanly")));
        Optional<ApiMessageAndVersion> record = builder.build();
        return record.map(one -> PartitionChangeRecordJsonConverter.write((PartitionChangeRecord) one.message(), one.version())).orElse(null);
    }

    static int[] ints(JsonNode node) {
        return list(node).stream().mapToInt(Integer::intValue).toArray();
    }

    static List<Integer> list(JsonNode node) {
        List<Integer> found = new ArrayList<>();
        node.forEach(one -> found.add(one.asInt()));
        return found;
    }
}
