import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.BatchMetadata;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import org.apache.kafka.storage.internals.log.LogOffsetSnapshot;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.OffsetResultHolder;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.TimestampOffset;
import org.apache.kafka.storage.internals.log.TxnMetadata;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/** What a log looks like from outside, as answers. */
final class LogView {
    static Object read(FetchDataInfo info) throws IOException {
        List<Object> aborted = null;
        if (info.abortedTransactions.isPresent()) {
            aborted = new ArrayList<>();
            for (FetchResponseData.AbortedTransaction transaction : info.abortedTransactions.get())
                aborted.add(Json.list(transaction.producerId(), transaction.firstOffset()));
        }
        return Json.map(
            "position", position(info.fetchOffsetMetadata),
            "records", bytes(info.records),
            "first_entry_incomplete", info.firstEntryIncomplete,
            "aborted_transactions", aborted);
    }

    static byte[] bytes(Records records) throws IOException {
        if (records instanceof MemoryRecords)
            return Json.bytes(((MemoryRecords) records).buffer());
        ByteBuffer buffer = ByteBuffer.allocate(records.sizeInBytes());
        ((FileRecords) records).readInto(buffer, 0);
        return Json.bytes(buffer);
    }

    static Object aborted(List<AbortedTxn> transactions) {
        List<Object> list = new ArrayList<>();
        for (AbortedTxn transaction : transactions)
            list.add(Json.map(
                "producer_id", transaction.producerId(),
                "first_offset", transaction.firstOffset(),
                "last_offset", transaction.lastOffset(),
                "last_stable_offset", transaction.lastStableOffset()));
        return list;
    }

    static Object timestampAndOffset(OffsetResultHolder holder) {
        return holder.timestampAndOffsetOpt()
            .map(found -> Json.list(found.timestamp, found.offset, found.leaderEpoch))
            .orElse(null);
    }

    static Object position(LogOffsetMetadata metadata) {
        return Json.list(metadata.messageOffset, metadata.segmentBaseOffset, metadata.relativePositionInSegment);
    }

    static Object state(UnifiedLog log) throws IOException {
        LogOffsetSnapshot bounds = log.fetchOffsetSnapshot();
        List<Object> epochs = new ArrayList<>();
        for (EpochEntry entry : log.leaderEpochCache().epochEntries())
            epochs.add(Json.list(entry.epoch(), entry.startOffset()));
        return Json.map(
            "log_start_offset", bounds.logStartOffset(),
            "log_end_offset", bounds.logEndOffset().messageOffset,
            "high_watermark", bounds.highWatermark().messageOffset,
            "last_stable_offset", bounds.lastStableOffset().messageOffset,
            "first_unstable_offset", log.firstUnstableOffset(),
            "recovery_point", log.recoveryPoint(),
            "size", log.size(),
            "segments", baseOffsets(log),
            "leader_epochs", epochs,
            "producer_snapshot", log.latestProducerSnapshotOffset(),
            "producer_state_end", log.latestProducerStateEndOffset());
    }

    private static List<Long> baseOffsets(UnifiedLog log) {
        List<Long> offsets = new ArrayList<>();
        for (LogSegment segment : log.logSegments())
            offsets.add(segment.baseOffset());
        return offsets;
    }

    static Object segments(UnifiedLog log) throws IOException {
        List<Object> segments = new ArrayList<>();
        for (LogSegment segment : log.logSegments()) {
            TimestampOffset largest = segment.readMaxTimestampAndOffsetSoFar();
            segments.add(Json.map(
                "base_offset", segment.baseOffset(),
                "size", segment.size(),
                "next_offset", segment.readNextOffset(),
                "largest_timestamp", largest.timestamp(),
                "offset_of_largest_timestamp", largest.offset(),
                "first_batch_timestamp", segment.getFirstBatchTimestamp(),
                "last_modified", segment.lastModified(),
                "offset_index_entries", segment.offsetIndex().entries(),
                "time_index_entries", segment.timeIndex().entries(),
                "aborted_transactions", aborted(segment.txnIndex().allAbortedTxns())));
        }
        return segments;
    }

    static Object producers(UnifiedLog log) throws ReflectiveOperationException {
        ProducerStateManager manager = log.producerStateManager();
        return Json.map(
            "map_end_offset", manager.mapEndOffset(),
            "ongoing", transactions(manager, "ongoingTxns"),
            "unreplicated", transactions(manager, "unreplicatedTxns"),
            "producers", producers(manager.activeProducers().values()));
    }

    static Object producers(Collection<ProducerStateEntry> entries) {
        List<ProducerStateEntry> sorted = new ArrayList<>(entries);
        sorted.sort(Comparator.comparingLong(ProducerStateEntry::producerId));
        List<Object> producers = new ArrayList<>();
        for (ProducerStateEntry entry : sorted) {
            List<Object> batches = new ArrayList<>();
            for (BatchMetadata batch : entry.batchMetadata())
                batches.add(Json.map(
                    "first_sequence", batch.firstSeq(),
                    "last_sequence", batch.lastSeq(),
                    "first_offset", batch.firstOffset(),
                    "last_offset", batch.lastOffset(),
                    "timestamp", batch.timestamp()));
            producers.add(Json.map(
                "producer_id", entry.producerId(),
                "producer_epoch", entry.producerEpoch(),
                "coordinator_epoch", entry.coordinatorEpoch(),
                "last_timestamp", entry.lastTimestamp(),
                "current_transaction_first_offset", entry.currentTxnFirstOffset(),
                "batches", batches));
        }
        return producers;
    }

    @SuppressWarnings("unchecked")
    private static Object transactions(ProducerStateManager manager, String name) throws ReflectiveOperationException {
        Field field = ProducerStateManager.class.getDeclaredField(name);
        field.setAccessible(true);
        List<Object> transactions = new ArrayList<>();
        for (TxnMetadata transaction : ((Map<Long, TxnMetadata>) field.get(manager)).values())
            transactions.add(Json.list(transaction.producerId, transaction.firstOffset.messageOffset, transaction.lastOffset));
        return transactions;
    }

    private LogView() { }
}
