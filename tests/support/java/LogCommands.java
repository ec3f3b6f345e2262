import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TransactionVersion;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/** Commands on partition logs: each open log is Kafka's UnifiedLog under a number. */
final class LogCommands {
    /** One open log and its background work; a crash forgets both. */
    static final class OpenLog {
        final UnifiedLog log;
        final ManualScheduler scheduler;

        OpenLog(UnifiedLog log, ManualScheduler scheduler) {
            this.log = log;
            this.scheduler = scheduler;
        }
    }

    private final ManualTime time;
    private final BrokerTopicStats stats = new BrokerTopicStats(false);
    private final Map<Integer, OpenLog> logs = new LinkedHashMap<>();
    private int opened = 0;
    private boolean tasksRunThemselves = true;

    LogCommands(ManualTime time) {
        this.time = time;
    }

    void register(Map<String, LogOracle.Command> commands) {
        commands.put("reset", this::reset);
        commands.put("now", args -> time.milliseconds());
        commands.put("set_clock", this::setClock);
        commands.put("run_tasks", args -> runTasks());
        commands.put("pending_tasks", args -> find(args).scheduler.pending());
        commands.put("tasks_run_themselves", args -> tasksRunThemselves = args.flag("value", true));

        commands.put("open", this::open);
        commands.put("close", this::close);
        commands.put("crash", this::crash);
        commands.put("delete", this::delete);
        commands.put("rename_dir", args -> run(() -> log(args).renameDir(args.text("name"), args.flag("reinitialize_epochs", true))));
        commands.put("update_config", args -> run(() -> log(args).updateConfig(config(args))));

        commands.put("append_as_leader", this::appendAsLeader);
        commands.put("append_as_follower", args ->
            appended(log(args).appendAsFollower(records(args), args.integer("leader_epoch", Integer.MAX_VALUE))));
        commands.put("set_high_watermark", args -> log(args).updateHighWatermark(args.number("offset")));
        commands.put("roll", this::roll);
        commands.put("flush", args -> run(() -> log(args).flush(args.flag("active", true))));
        commands.put("flush_up_to", args -> run(() -> log(args).flushUptoOffsetExclusive(args.number("offset"))));
        commands.put("take_snapshot", args -> run(() -> log(args).takeProducerSnapshot()));
        commands.put("remove_expired_producers", args -> run(() -> log(args).removeExpiredProducers(time.milliseconds())));
        commands.put("assign_epoch", args ->
            run(() -> log(args).assignEpochStartOffset(args.integer("epoch"), args.number("offset"))));
        commands.put("delete_old_segments", args -> log(args).deleteOldSegments());
        commands.put("delete_records", args -> log(args).maybeIncrementLogStartOffset(
            args.number("before_offset"),
            LogStartOffsetIncrementReason.valueOf(args.text("reason", "ClientRecordDeletion"))));
        commands.put("truncate_to", args -> log(args).truncateTo(args.number("offset")));
        commands.put("truncate_fully_and_start_at", args -> run(() -> log(args).truncateFullyAndStartAt(
            args.number("offset"),
            args.has("log_start_offset") ? Optional.of(args.number("log_start_offset")) : Optional.empty())));

        commands.put("read", args -> LogView.read(log(args).read(
            args.number("offset"), args.integer("max_bytes"), FetchIsolation.valueOf(args.text("isolation", "LOG_END")),
            args.flag("min_one", true))));
        commands.put("aborted_transactions", args ->
            LogView.aborted(log(args).collectAbortedTransactions(args.number("from"), args.number("to"))));
        commands.put("offsets_by_timestamp", args -> {
            List<Object> found = new ArrayList<>();
            for (long timestamp : args.numbers("timestamps"))
                found.add(LogView.timestampAndOffset(log(args).fetchOffsetByTimestamp(timestamp, Optional.empty())));
            return found;
        });
        commands.put("end_offset_for_epoch", args -> log(args).endOffsetForEpoch(args.integer("epoch"))
            .map(end -> Json.list(end.epoch(), end.offset())).orElse(null));
        commands.put("offset_metadata", args -> LogView.position(log(args).maybeConvertToOffsetMetadata(args.number("offset"))));
        commands.put("state", args -> LogView.state(log(args)));
        commands.put("segments", args -> LogView.segments(log(args)));
        commands.put("producers", args -> LogView.producers(log(args)));
        new CleanerCommands(time, this).register(commands);
    }

    OpenLog find(Args args) {
        OpenLog open = logs.get(args.integer("log"));
        if (open == null)
            throw new IllegalArgumentException("no open log " + args.integer("log"));
        return open;
    }

    UnifiedLog log(Args args) {
        return find(args).log;
    }

    void runDueTasks() {
        if (tasksRunThemselves)
            runTasks();
    }

    private List<String> runTasks() {
        List<String> ran = new ArrayList<>();
        for (OpenLog open : new ArrayList<>(logs.values()))
            ran.addAll(open.scheduler.runDue());
        return ran;
    }

    static Object run(LogOracle.Action action) throws Exception {
        action.run();
        return null;
    }

    private Object reset(Args args) {
        for (OpenLog open : logs.values())
            abandon(open);
        logs.clear();
        tasksRunThemselves = true;
        time.set(args.number("now_ms"));
        return null;
    }

    private Object setClock(Args args) {
        time.set(args.number("now_ms"));
        return null;
    }

    private static LogConfig config(Args args) {
        return new LogConfig(args.textMap("config"));
    }

    private Object open(Args args) throws IOException {
        File directory = args.file("directory");
        Files.createDirectories(directory.toPath());
        ManualScheduler scheduler = new ManualScheduler(time);
        UnifiedLog log = UnifiedLog.create(
            directory,
            config(args),
            args.number("log_start_offset", 0),
            args.number("recovery_point", 0),
            scheduler,
            stats,
            time,
            args.integer("max_transaction_timeout_ms", 900_000),
            new ProducerStateManagerConfig(
                args.integer("producer_id_expiration_ms", 86_400_000), args.flag("verify_transactions", false)),
            args.integer("producer_id_expiration_check_interval_ms", 600_000),
            new LogDirFailureChannel(1),
            args.flag("clean_shutdown", true),
            args.has("topic_id") ? Optional.of(Uuid.fromString(args.text("topic_id"))) : Optional.empty(),
            new ConcurrentHashMap<>(),
            false,
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        int number = ++opened;
        logs.put(number, new OpenLog(log, scheduler));
        return number;
    }

    private Object close(Args args) {
        OpenLog open = find(args);
        open.log.close();
        abandon(open);
        logs.remove(args.integer("log"));
        return null;
    }

    private Object crash(Args args) {
        abandon(find(args));
        logs.remove(args.integer("log"));
        return null;
    }

    private Object delete(Args args) {
        OpenLog open = find(args);
        open.log.delete();
        abandon(open);
        logs.remove(args.integer("log"));
        return null;
    }

    /** Let go of files and mappings without flushing, trimming or telling anyone: what a killed process does. */
    private static void abandon(OpenLog open) {
        open.scheduler.shutdown();
        open.log.closeHandlers();
        open.log.removeLogMetrics();
    }

    private static MemoryRecords records(Args args) throws IOException {
        return MemoryRecords.readableRecords(args.buffer("records"));
    }

    private Object appendAsLeader(Args args) throws IOException {
        UnifiedLog log = log(args);
        MemoryRecords records = records(args);
        VerificationGuard guard = VerificationGuard.SENTINEL;
        if (args.flag("verified", false)) {
            RecordBatch first = records.batches().iterator().next();
            guard = log.maybeStartTransactionVerification(
                first.producerId(), first.baseSequence(), first.producerEpoch(), args.flag("supports_epoch_bump", true));
        }
        AppendOrigin origin = AppendOrigin.valueOf(args.text("origin", "CLIENT"));
        TransactionVersion version = origin == AppendOrigin.COORDINATOR ? TransactionVersion.TV_0 : null;
        return appended(log.appendAsLeader(
            records,
            args.integer("leader_epoch", 0),
            origin,
            RequestLocal.noCaching(),
            guard,
            (short) args.integer("transaction_version", version == null ? TransactionVersion.TV_UNKNOWN : version.featureLevel())));
    }

    private static Object appended(LogAppendInfo info) {
        List<Object> errors = new ArrayList<>();
        for (ProduceResponse.RecordError error : info.recordErrors())
            errors.add(Json.list(error.batchIndex, error.message));
        return Json.map(
            "first_offset", info.firstOffset(),
            "last_offset", info.lastOffset(),
            "last_leader_epoch", info.lastLeaderEpoch(),
            "max_timestamp", info.maxTimestamp(),
            "log_append_time", info.logAppendTime(),
            "log_start_offset", info.logStartOffset(),
            "source_compression", info.sourceCompression().name,
            "valid_bytes", info.validBytes(),
            "record_errors", errors,
            "leader_hw_change", info.leaderHwChange().name());
    }

    private Object roll(Args args) throws IOException {
        Optional<Long> expected = args.has("next_offset") ? Optional.of(args.number("next_offset")) : Optional.empty();
        return log(args).roll(expected).baseOffset();
    }
}
