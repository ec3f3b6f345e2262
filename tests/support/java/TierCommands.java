import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

import java.io.InputStream;
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** Commands on Kafka's LocalTieredStorage, whose class is in a jar of its own. */
final class TierCommands {
    private static final String PACKAGE = "org.apache.kafka.server.log.remote.storage.";
    private URLClassLoader loader;
    private RemoteStorageManager tier;

    void register(Map<String, LogOracle.Command> commands) {
        commands.put("tier_open", this::open);
        commands.put("tier_copy", this::copy);
        commands.put("tier_fetch_segment", this::fetchSegment);
        commands.put("tier_fetch_index", args -> bytes(
            tier.fetchIndex(segment(args), RemoteStorageManager.IndexType.valueOf(args.text("kind")))));
        commands.put("tier_delete", args -> {
            tier.deleteLogSegmentData(segment(args));
            return null;
        });
        commands.put("tier_segments", this::segments);
    }

    private Object open(Args args) throws Exception {
        loader = new URLClassLoader(new URL[] {args.file("jar").toURI().toURL()}, TierCommands.class.getClassLoader());
        tier = (RemoteStorageManager) loader.loadClass(PACKAGE + "LocalTieredStorage").getDeclaredConstructor().newInstance();
        tier.configure(Map.of("dir", args.text("directory"), "delete.on.close", "false", "broker.id", 1));
        return null;
    }

    private Object copy(Args args) throws Exception {
        Optional<Path> transactions = args.has("transaction_index")
            ? Optional.of(args.file("transaction_index").toPath()) : Optional.empty();
        tier.copyLogSegmentData(segment(args), new LogSegmentData(
            args.file("log").toPath(), args.file("offset_index").toPath(), args.file("time_index").toPath(), transactions,
            args.file("producer_snapshot").toPath(), ByteBuffer.wrap(Base64.getDecoder().decode(args.text("leader_epochs")))));
        return null;
    }

    private Object fetchSegment(Args args) throws Exception {
        return bytes(tier.fetchLogSegment(segment(args), args.integer("start"), args.integer("end")));
    }

    private static byte[] bytes(InputStream stream) throws Exception {
        try (stream) {
            return stream.readAllBytes();
        }
    }

    /** The traversal opens every file set, and fails on a name that it does not know. */
    private Object segments(Args args) throws Exception {
        List<Object> found = new ArrayList<>();
        Class<?> traverser = loader.loadClass(PACKAGE + "LocalTieredStorageTraverser");
        Object visitor = Proxy.newProxyInstance(loader, new Class<?>[] {traverser}, (proxy, method, given) -> {
            if (method.getName().equals("visitSegment")) {
                var getter = given[0].getClass().getMethod("getRemoteLogSegmentId");
                getter.setAccessible(true);
                found.add(((RemoteLogSegmentId) getter.invoke(given[0])).id().toString());
            }
            return null;
        });
        var traverse = tier.getClass().getMethod("traverse", traverser);
        traverse.setAccessible(true);
        traverse.invoke(tier, visitor);
        return found;
    }

    private static RemoteLogSegmentMetadata segment(Args all) {
        Args args = all.inner("segment");
        TopicIdPartition partition = new TopicIdPartition(
            Uuid.fromString(args.text("topic_id")), new TopicPartition(args.text("topic"), args.integer("partition")));
        Map<Integer, Long> epochs = new TreeMap<>();
        for (Args entry : args.list("epochs"))
            epochs.put(entry.integer("epoch"), entry.number("start_offset"));
        return new RemoteLogSegmentMetadata(
            new RemoteLogSegmentId(partition, Uuid.fromString(args.text("id"))), args.number("start_offset"),
            args.number("end_offset"), 0, 1, 0, args.integer("size"), epochs);
    }
}
