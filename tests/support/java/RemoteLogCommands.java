import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.metadata.storage.RemoteLogMetadataCache;
import org.apache.kafka.server.log.remote.metadata.storage.RemoteLogMetadataTopicPartitioner;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;
import org.apache.kafka.server.log.remote.storage.RemoteLogManager;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;

/** Commands on tiered storage: metadata records, the partition of the metadata topic, the cache of segments. */
final class RemoteLogCommands {
    private final RemoteLogMetadataSerde serde = new RemoteLogMetadataSerde();
    private final Map<Integer, RemoteLogMetadataCache> caches = new HashMap<>();

    void register(Map<String, LogOracle.Command> commands) {
        commands.put("remote_partition", args -> new RemoteLogMetadataTopicPartitioner(args.integer("partitions"))
            .metadataPartition(new TopicIdPartition(Uuid.fromString(args.text("topic_id")),
                new TopicPartition("topic", args.integer("partition")))));
        commands.put("remote_record", args -> {
            RemoteLogMetadata metadata = serde.deserialize(args.bytes("value"));
            return Map.of("bytes", serde.serialize(metadata), "text", metadata.toString());
        });
        commands.put("remote_cache_open", this::open);
        commands.put("remote_cache_apply", this::apply);
        commands.put("remote_cache_view", this::view);
        commands.put("remote_within_epochs", this::isWithinEpochs);
    }

    private Object open(Args args) throws Exception {
        RemoteLogMetadataCache cache = new RemoteLogMetadataCache();
        caches.clear();
        caches.put(1, cache);
        if (args.flag("initialized", true))
            call(cache, "markInitialized");
        return 1;
    }

    private Object apply(Args args) throws Exception {
        RemoteLogMetadata metadata = serde.deserialize(args.bytes("value"));
        RemoteLogMetadataCache cache = caches.get(1);
        if (metadata instanceof RemoteLogSegmentMetadata)
            call(cache, "addCopyInProgressSegment", metadata);
        else
            call(cache, "updateRemoteLogSegmentMetadata", (RemoteLogSegmentMetadataUpdate) metadata);
        return null;
    }

    private Object view(Args args) throws Exception {
        RemoteLogMetadataCache cache = caches.get(1);
        Map<String, Object> view = new LinkedHashMap<>();
        List<String> all = new ArrayList<>();
        ((Iterator<?>) call(cache, "listAllRemoteLogSegments")).forEachRemaining(one -> all.add(describe((RemoteLogSegmentMetadata) one)));
        all.sort(null);
        view.put("all", all);
        Map<String, Object> epochs = new LinkedHashMap<>();
        for (long number : args.numbers("epochs")) {
            int epoch = (int) number;
            List<String> here = new ArrayList<>();
            ((Iterator<?>) call(cache, "listRemoteLogSegments", epoch)).forEachRemaining(one -> here.add(describe((RemoteLogSegmentMetadata) one)));
            here.sort(null);
            Map<String, Object> found = new LinkedHashMap<>();
            found.put("segments", here);
            found.put("highest", ((Optional<?>) call(cache, "highestOffsetForEpoch", epoch)).orElse(null));
            List<Object> lookups = new ArrayList<>();
            List<Object> transactions = new ArrayList<>();
            for (long offset : args.numbers("offsets")) {
                lookups.add(idOf((Optional<?>) call(cache, "remoteLogSegmentMetadata", epoch, offset)));
                transactions.add(idOf((Optional<?>) call(cache, "nextSegmentWithTxnIndex", epoch, offset)));
            }
            found.put("lookups", lookups);
            found.put("transactions", transactions);
            epochs.put(Integer.toString(epoch), found);
        }
        view.put("epochs", epochs);
        return view;
    }

    private Object isWithinEpochs(Args args) throws Exception {
        Method method = RemoteLogManager.class.getDeclaredMethod("isRemoteSegmentWithinLeaderEpochs",
            RemoteLogSegmentMetadata.class, long.class, NavigableMap.class);
        Method filter = RemoteLogManager.class.getDeclaredMethod("buildFilteredLeaderEpochMap", NavigableMap.class);
        method.setAccessible(true);
        filter.setAccessible(true);
        NavigableMap<Integer, Long> epochs = new TreeMap<>();
        args.textMap("epochs").forEach((epoch, offset) -> epochs.put(Integer.parseInt(epoch), Long.parseLong(offset)));
        return method.invoke(null, serde.deserialize(args.bytes("value")), args.number("log_end"), filter.invoke(null, epochs));
    }

    private static String describe(RemoteLogSegmentMetadata segment) {
        return segment.startOffset() + " " + segment.endOffset() + " " + segment.remoteLogSegmentId().id() + " "
            + segment.state() + " " + segment.brokerId() + " " + segment.eventTimestampMs() + " "
            + segment.customMetadata().map(one -> one.value().length).orElse(-1);
    }

    private static String idOf(Optional<?> segment) {
        return segment.map(one -> ((RemoteLogSegmentMetadata) one).remoteLogSegmentId().id().toString()).orElse(null);
    }

    /** Call a method that Kafka's tests call, too; most of them are package-private. */
    private static Object call(Object target, String name, Object... arguments) throws Exception {
        for (Method method : target.getClass().getDeclaredMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
                method.setAccessible(true);
                try {
                    return method.invoke(target, arguments);
                } catch (InvocationTargetException wrapped) {
                    if (wrapped.getCause() instanceof Exception)
                        throw (Exception) wrapped.getCause();
                    throw wrapped;
                }
            }
        }
        throw new IllegalArgumentException(target.getClass() + " has no method " + name);
    }
}
