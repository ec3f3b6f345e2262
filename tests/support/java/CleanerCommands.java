import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;

import java.lang.reflect.Method;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/** Commands that compact a log with Kafka's cleaner: the work of one cleaner thread, without the thread. */
final class CleanerCommands {
    private static final Consumer<TopicPartition> NEVER_INTERRUPTED = partition -> { };

    private final ManualTime time;
    private final LogCommands logs;
    private final Throttler unlimited;

    CleanerCommands(ManualTime time, LogCommands logs) {
        this.time = time;
        this.logs = logs;
        this.unlimited = new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "cleaner-io", "bytes", time);
    }

    void register(Map<String, LogOracle.Command> commands) {
        commands.put("cleanable_offsets", this::cleanableOffsets);
        commands.put("clean", this::clean);
    }

    /** What the cleaner's manager knows of a log before it chooses: its dirty section, from where the last cleaning ended. */
    private final class Candidate {
        final LogToClean log;
        final boolean forceUpdateCheckpoint;
        final long compactionDelayMs;

        Candidate(UnifiedLog log, Args args) throws ReflectiveOperationException {
            Optional<Long> last = args.has("last_clean_offset") ? Optional.of(args.number("last_clean_offset")) : Optional.empty();
            Object offsets = manager("cleanableOffsets", UnifiedLog.class, Optional.class, long.class)
                .invoke(null, log, last, time.milliseconds());
            long firstDirty = (Long) get(offsets, "firstDirtyOffset");
            forceUpdateCheckpoint = (Boolean) get(offsets, "forceUpdateCheckpoint");
            compactionDelayMs = (Long) manager("maxCompactionDelay", UnifiedLog.class, long.class, long.class)
                .invoke(null, log, firstDirty, time.milliseconds());
            this.log = new LogToClean(log, firstDirty, (Long) get(offsets, "firstUncleanableDirtyOffset"), compactionDelayMs > 0);
        }
    }

    private static Method manager(String name, Class<?>... parameters) throws ReflectiveOperationException {
        Method method = LogCleanerManager.class.getDeclaredMethod(name, parameters);
        method.setAccessible(true);
        return method;
    }

    private static Object get(Object record, String name) throws ReflectiveOperationException {
        Method method = record.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        return method.invoke(record);
    }

    private Object cleanableOffsets(Args args) throws ReflectiveOperationException {
        Candidate candidate = new Candidate(logs.log(args), args);
        return Json.map(
            "first_dirty_offset", candidate.log.firstDirtyOffset(),
            "first_uncleanable_offset", candidate.log.firstUncleanableOffset(),
            "force_update_checkpoint", candidate.forceUpdateCheckpoint,
            "clean_bytes", candidate.log.cleanBytes(),
            "cleanable_bytes", candidate.log.cleanableBytes(),
            "cleanable_ratio", candidate.log.totalBytes() == 0 ? 0.0 : candidate.log.cleanableRatio(),
            "compaction_delay_ms", candidate.compactionDelayMs);
    }

    private Object clean(Args args) throws Exception {
        LogToClean dirty = new Candidate(logs.log(args), args).log;
        if (dirty.cleanableBytes() == 0) // a cleaner thread never chooses such a log
            return result(dirty, dirty.firstDirtyOffset(), new CleanerStats(time));
        Cleaner cleaner = new Cleaner(
            0,
            new SkimpyOffsetMap(args.integer("dedupe_buffer_size"), "MD5"),
            args.integer("io_buffer_size") / 2, // read and write buffer share it
            args.integer("max_io_buffer_size"),
            args.real("load_factor", 0.9),
            unlimited,
            time,
            NEVER_INTERRUPTED);
        Map.Entry<Long, CleanerStats> cleaned = cleaner.clean(dirty);
        return result(dirty, cleaned.getKey(), cleaned.getValue());
    }

    private static Object result(LogToClean dirty, long toOffset, CleanerStats stats) {
        return Json.map(
            "from_offset", dirty.firstDirtyOffset(),
            "to_offset", toOffset,
            "bytes_read", stats.bytesRead(),
            "bytes_written", stats.bytesWritten(),
            "messages_read", stats.messagesRead(),
            "messages_written", stats.messagesWritten(),
            "map_messages_read", stats.mapMessagesRead(),
            "invalid_messages_read", stats.invalidMessagesRead(),
            "buffer_utilization", stats.bufferUtilization());
    }
}
