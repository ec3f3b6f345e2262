import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.AbstractLegacyRecordBatch;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A batch and its records with every field that Kafka can name. */
final class BatchView {
    static Map<String, Object> of(MutableRecordBatch batch) {
        Map<String, Object> view = Json.map(
            "magic", batch.magic(),
            "size", batch.sizeInBytes(),
            "valid", batch.isValid(),
            "base_offset", batch.baseOffset(),
            "last_offset", batch.lastOffset(),
            "next_offset", batch.nextOffset(),
            "codec", batch.compressionType().name,
            "timestamp_type", batch.timestampType().name,
            "max_timestamp", batch.maxTimestamp(),
            "leader_epoch", batch.partitionLeaderEpoch(),
            "producer_id", batch.producerId(),
            "producer_epoch", batch.producerEpoch(),
            "base_sequence", batch.baseSequence(),
            "last_sequence", batch.lastSequence(),
            "transactional", batch.isTransactional(),
            "control", batch.isControlBatch(),
            "delete_horizon_ms", batch.deleteHorizonMs(),
            "count", batch.countOrNull(),
            "crc", checksum(batch));
        try {
            List<Object> records = new ArrayList<>();
            for (Record record : batch)
                records.add(of(record));
            view.put("records", records);
        } catch (RuntimeException | Error unreadable) {
            view.put("error", Failure.describe(unreadable));
        }
        return view;
    }

    private static Object checksum(MutableRecordBatch batch) {
        return batch instanceof AbstractLegacyRecordBatch
            ? ((AbstractLegacyRecordBatch) batch).outerRecord().checksum() : batch.checksum();
    }

    private static Map<String, Object> of(Record record) {
        List<Object> headers = new ArrayList<>();
        for (Header header : record.headers())
            headers.add(Json.list(header.key().getBytes(StandardCharsets.UTF_8), header.value()));
        return Json.map(
            "offset", record.offset(),
            "timestamp", record.timestamp(),
            "sequence", record.sequence(),
            "size", record.sizeInBytes(),
            "key", record.key(),
            "value", record.value(),
            "headers", headers);
    }

    private BatchView() { }
}
