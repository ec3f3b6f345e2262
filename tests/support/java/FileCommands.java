import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/** Commands on the small files of a log directory, and Kafka's tools without a JVM for each. */
final class FileCommands {
    void register(Map<String, LogOracle.Command> commands) {
        commands.put("read_offset_checkpoint", this::readOffsets);
        commands.put("write_offset_checkpoint", this::writeOffsets);
        commands.put("read_leader_epochs", this::readEpochs);
        commands.put("write_leader_epochs", this::writeEpochs);
        commands.put("read_partition_metadata", args ->
            new PartitionMetadataFile(args.file("file"), failures()).read().topicId().toString());
        commands.put("read_clean_shutdown", args -> Json.list(new CleanShutdownFileHandler(args.text("directory")).read()).get(0));
        commands.put("write_clean_shutdown", args -> LogCommands.run(() ->
            new CleanShutdownFileHandler(args.text("directory")).write(args.number("broker_epoch"))));
        commands.put("read_snapshot", args -> LogView.producers(ProducerStateManager.readSnapshot(args.file("file"))));
        commands.put("write_snapshot", this::writeSnapshot);
        commands.put("tool", this::tool);
    }

    private static LogDirFailureChannel failures() {
        return new LogDirFailureChannel(1);
    }

    private Object readOffsets(Args args) throws IOException {
        List<Object> offsets = new ArrayList<>();
        new OffsetCheckpointFile(args.file("file"), failures()).read().forEach((partition, offset) ->
            offsets.add(Json.list(partition.topic(), partition.partition(), offset)));
        return offsets;
    }

    private Object writeOffsets(Args args) throws IOException {
        Map<TopicPartition, Long> offsets = new LinkedHashMap<>();
        for (Args entry : args.list("offsets"))
            offsets.put(new TopicPartition(entry.text("topic"), entry.integer("partition")), entry.number("offset"));
        new OffsetCheckpointFile(args.file("file"), failures()).write(offsets);
        return null;
    }

    private Object readEpochs(Args args) throws IOException {
        List<Object> epochs = new ArrayList<>();
        for (EpochEntry entry : new LeaderEpochCheckpointFile(args.file("file"), failures()).read())
            epochs.add(Json.list(entry.epoch(), entry.startOffset()));
        return epochs;
    }

    private Object writeEpochs(Args args) throws IOException {
        List<EpochEntry> epochs = new ArrayList<>();
        for (Args entry : args.list("epochs"))
            epochs.add(new EpochEntry(entry.integer("epoch"), entry.number("start_offset")));
        new LeaderEpochCheckpointFile(args.file("file"), failures()).write(epochs);
        return null;
    }

    /** A snapshot keeps one batch per producer, its last; the producers in the order given. */
    private Object writeSnapshot(Args args) throws Exception {
        Map<Long, ProducerStateEntry> producers = new LinkedHashMap<>();
        for (Args producer : args.list("producers")) {
            OptionalLong transaction = producer.has("current_transaction_first_offset")
                ? OptionalLong.of(producer.number("current_transaction_first_offset")) : OptionalLong.empty();
            short epoch = (short) producer.integer("producer_epoch");
            ProducerStateEntry entry = new ProducerStateEntry(
                producer.number("producer_id"), epoch, producer.integer("coordinator_epoch"), producer.number("last_timestamp"), transaction);
            for (Args batch : producer.list("batches")) {
                java.lang.reflect.Method add = ProducerStateEntry.class.getDeclaredMethod(
                    "addBatch", short.class, int.class, long.class, int.class, long.class);
                add.setAccessible(true);
                long first = batch.number("first_offset");
                long last = batch.number("last_offset");
                add.invoke(entry, epoch, batch.integer("last_sequence"), last, (int) (last - first), batch.number("timestamp"));
            }
            producers.put(entry.producerId(), entry);
        }
        ProducerStateManager.writeSnapshot(args.file("file"), producers, true);
        return null;
    }

    @SuppressWarnings("serial")
    private static final class Exited extends RuntimeException {
        Exited(int status) {
            super("exit " + status, null, false, false);
        }
    }

    /** Run a tool's main() in here: its status and what it printed. Some tools catch what ends them: the first counts. */
    private Object tool(Args args) throws Exception {
        Integer[] status = {null};
        Exit.Procedure end = (code, message) -> {
            if (status[0] == null)
                status[0] = code;
            throw new Exited(code);
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        try {
            String output = LogOracle.captureOutput(() -> {
                try {
                    Class.forName(args.text("class")).getMethod("main", String[].class)
                        .invoke(null, (Object) args.texts("arguments").toArray(new String[0]));
                } catch (InvocationTargetException thrown) {
                    if (!(thrown.getCause() instanceof Exited))
                        throw thrown;
                }
            });
            return Json.list(status[0] == null ? 0 : status[0], output);
        } finally {
            Exit.resetExitProcedure();
            Exit.resetHaltProcedure();
        }
    }
}
