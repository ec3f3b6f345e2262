import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Commands on record batches in memory: build, decode, validate, filter, compress. */
final class RecordCommands {
    private final ManualTime time;

    RecordCommands(ManualTime time) {
        this.time = time;
    }

    void register(Map<String, LogOracle.Command> commands) {
        commands.put("build_batch", this::build);
        commands.put("end_transaction_marker", this::endTransactionMarker);
        commands.put("leader_change", this::leaderChange);
        commands.put("decode", this::decode);
        commands.put("validate", this::validate);
        commands.put("filter", this::filter);
        commands.put("compress", this::compress);
        commands.put("decompress", this::decompress);
    }

    private static TimestampType timestampType(Args args) {
        return TimestampType.forName(args.text("timestamp_type", "CreateTime"));
    }

    private static Compression compression(Args args, String name) {
        String codec = args.text(name, "none");
        if (!args.has("level"))
            return Compression.of(codec).build();
        switch (codec) {
            case "gzip":
                return Compression.gzip().level(args.integer("level")).build();
            case "lz4":
                return Compression.lz4().level(args.integer("level")).build();
            case "zstd":
                return Compression.zstd().level(args.integer("level")).build();
            default:
                throw new IllegalArgumentException(codec + " has no levels");
        }
    }

    private Object build(Args args) throws IOException {
        ByteBufferOutputStream out = new ByteBufferOutputStream(1024);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            out,
            (byte) args.integer("magic", RecordBatch.CURRENT_MAGIC_VALUE),
            compression(args, "codec"),
            timestampType(args),
            args.number("base_offset", 0),
            args.number("log_append_time", RecordBatch.NO_TIMESTAMP),
            args.number("producer_id", RecordBatch.NO_PRODUCER_ID),
            (short) args.integer("producer_epoch", RecordBatch.NO_PRODUCER_EPOCH),
            args.integer("base_sequence", RecordBatch.NO_SEQUENCE),
            args.flag("transactional", false),
            args.flag("control", false),
            args.integer("leader_epoch", RecordBatch.NO_PARTITION_LEADER_EPOCH),
            Integer.MAX_VALUE,
            args.number("delete_horizon_ms", RecordBatch.NO_TIMESTAMP));
        long offset = args.number("base_offset", 0);
        for (Args record : args.list("records")) {
            offset = record.number("offset", offset);
            long timestamp = record.number("timestamp", RecordBatch.NO_TIMESTAMP);
            if (args.flag("control", false))
                builder.appendControlRecordWithOffset(offset, new org.apache.kafka.common.record.internal.SimpleRecord(
                    timestamp, record.bytes("key"), record.bytes("value"), headers(record)));
            else
                builder.appendWithOffset(offset, timestamp, record.bytes("key"), record.bytes("value"), headers(record));
            offset++;
        }
        if (args.has("last_offset"))
            builder.overrideLastOffset(args.number("last_offset"));
        return Json.bytes(builder.build().buffer());
    }

    private static Header[] headers(Args record) throws IOException {
        List<Header> headers = new ArrayList<>();
        for (Args header : record.list("headers"))
            headers.add(new RecordHeader(new String(header.bytes("key"), StandardCharsets.UTF_8), header.bytes("value")));
        return headers.toArray(new Header[0]);
    }

    private Object endTransactionMarker(Args args) {
        ControlRecordType type = args.flag("commit", true) ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        return Json.bytes(MemoryRecords.withEndTransactionMarker(
            args.number("base_offset", 0),
            args.number("timestamp", time.milliseconds()),
            args.integer("leader_epoch", RecordBatch.NO_PARTITION_LEADER_EPOCH),
            args.number("producer_id"),
            (short) args.integer("producer_epoch"),
            new EndTransactionMarker(type, args.integer("coordinator_epoch", 0))).buffer());
    }

    private Object leaderChange(Args args) {
        List<LeaderChangeMessage.Voter> voters = new ArrayList<>();
        for (long voter : args.numbers("voters"))
            voters.add(new LeaderChangeMessage.Voter().setVoterId((int) voter));
        LeaderChangeMessage message = new LeaderChangeMessage()
            .setLeaderId(args.integer("leader_id")).setVoters(voters).setGrantingVoters(voters);
        return Json.bytes(MemoryRecords.withLeaderChangeMessage(
            args.number("base_offset", 0), args.number("timestamp", time.milliseconds()),
            args.integer("leader_epoch", 0), ByteBuffer.allocate(1024), message).buffer());
    }

    private Object decode(Args args) throws IOException {
        List<Object> batches = new ArrayList<>();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(args.buffer("records")).batches())
            batches.add(BatchView.of(batch));
        return batches;
    }

    private Object validate(Args args) throws IOException {
        MemoryRecords records = MemoryRecords.readableRecords(args.buffer("records"));
        PrimitiveRef.LongRef offset = PrimitiveRef.ofLong(args.number("first_offset", 0));
        CompressionType source = args.has("source_codec")
            ? CompressionType.forName(args.text("source_codec")) : records.batches().iterator().next().compressionType();
        Compression target = args.has("target_codec") ? compression(args, "target_codec") : Compression.of(source).build();
        LogValidator validator = new LogValidator(
            records,
            new TopicPartition("topic", 0),
            time,
            source,
            target,
            args.flag("compacted", false),
            (byte) args.integer("to_magic", RecordBatch.CURRENT_MAGIC_VALUE),
            timestampType(args),
            args.number("timestamp_before_max_ms", Long.MAX_VALUE),
            args.number("timestamp_after_max_ms", Long.MAX_VALUE),
            args.integer("leader_epoch", 0),
            AppendOrigin.valueOf(args.text("origin", "CLIENT")));
        LogValidator.ValidationResult result =
            validator.validateMessagesAndAssignOffsets(offset, new NoMetrics(), BufferSupplier.NO_CACHING);
        return Json.map(
            "records", result.validatedRecords().buffer(),
            "next_offset", offset.value,
            "log_append_time", result.logAppendTimeMs(),
            "max_timestamp", result.maxTimestampMs(),
            "size_may_have_changed", result.messageSizeMaybeChanged(),
            "records_converted", result.recordValidationStats().numRecordsConverted());
    }

    private static final class NoMetrics implements LogValidator.MetricsRecorder {
        @Override
        public void recordInvalidMagic() { }

        @Override
        public void recordInvalidOffset() { }

        @Override
        public void recordInvalidSequence() { }

        @Override
        public void recordInvalidChecksums() { }

        @Override
        public void recordNoKeyCompactedTopic() { }
    }

    private Object filter(Args args) throws IOException {
        Set<Long> dropped = new HashSet<>(args.numbers("drop_offsets"));
        Set<Long> markersOfEmpty = new HashSet<>(args.numbers("markers_of_empty_transactions"));
        Map<String, String> retention = args.textMap("batch_retention");
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(
            args.number("now_ms", time.milliseconds()), args.number("delete_retention_ms", 0)) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                String verdict = retention.getOrDefault(String.valueOf(batch.baseOffset()), "DELETE_EMPTY");
                return new BatchRetentionResult(BatchRetention.valueOf(verdict), markersOfEmpty.contains(batch.baseOffset()));
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return !dropped.contains(record.offset());
            }
        };
        MemoryRecords.FilterResult result = MemoryRecords.readableRecords(args.buffer("records")).filterTo(
            filter, ByteBuffer.allocate(args.integer("buffer_size", 1024)), BufferSupplier.NO_CACHING);
        ByteBuffer output = result.outputBuffer();
        output.flip();
        return Json.map(
            "records", output,
            "messages_read", result.messagesRead(),
            "bytes_read", result.bytesRead(),
            "messages_retained", result.messagesRetained(),
            "bytes_retained", result.bytesRetained(),
            "max_offset", result.maxOffset(),
            "max_timestamp", result.maxTimestamp(),
            "offset_of_max_timestamp", result.shallowOffsetOfMaxTimestamp());
    }

    private Object compress(Args args) throws IOException {
        ByteBufferOutputStream out = new ByteBufferOutputStream(1024);
        try (OutputStream compressor = compression(args, "codec").wrapForOutput(out, (byte) args.integer("magic", 2))) {
            compressor.write(args.bytes("data"));
        }
        ByteBuffer written = out.buffer().duplicate();
        written.flip();
        return Json.bytes(written);
    }

    private Object decompress(Args args) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (InputStream in = compression(args, "codec").wrapForInput(
            args.buffer("data"), (byte) args.integer("magic", 2), BufferSupplier.NO_CACHING)) {
            in.transferTo(out);
        }
        return out.toByteArray();
    }
}
