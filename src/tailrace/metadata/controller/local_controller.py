"""LocalController: the only controller of a cluster, beside the broker of its node, or without one.

It makes the same decisions as Kafka's controller (`topic_creation.py`, `config_changes.py`, …), writes the same records
to `__cluster_metadata-0`, and responds when they are durable. So Apache Kafka can open the directory later, and this
controller can open a directory that Kafka has written.

    begin ──► (load the logs that the image names) ──► start_broker ──► requests … ──► stop_broker ──► close

A node with process.roles=controller has no broker: there is no `start_broker`. If other brokers are below this
controller, `brokers` decides their requests, and `served_log` is the metadata log that they follow.

`listener(change, now_ms)` carries out a change (creates logs, reconfigures, deletes) before the response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from tailrace.metadata.controller import raft_voters
from tailrace.metadata.controller.broker_control import BrokerControl, BrokerControlSettings
from tailrace.metadata.controller.control_state import NO_ERROR, ApiError, Charge, ControlState, Plan, free_of_charge
from tailrace.metadata.controller.own_broker import OwnBroker
from tailrace.metadata.controller.quorum_description import describe_quorum
from tailrace.metadata.controller.token_control import TokenControl
from tailrace.metadata.controller.topic_control import TopicControl
from tailrace.metadata.decisions import (
    acls,
    client_quotas,
    config_changes,
    feature_updates,
    scram_credentials,
)
from tailrace.metadata.decisions.brokers.broker_registration import plan_unregister
from tailrace.metadata.decisions.brokers.producer_ids import plan_producer_ids
from tailrace.metadata.decisions.config_changes import MayAlter
from tailrace.metadata.decisions.config_validation import BrokerCheck
from tailrace.metadata.decisions.replicas import leadership, reassignment
from tailrace.metadata.decisions.replicas.replica_placement import NextInt
from tailrace.metadata.decisions.topic_deletion import plan_delete_topics
from tailrace.metadata.image.effective_config import EffectiveConfigs
from tailrace.metadata.image.features import ELIGIBLE_LEADER_REPLICAS_VERSION, SUPPORTED
from tailrace.metadata.image.image import ConfigResource, MetadataImage, ResourceType
from tailrace.metadata.image.loader import Change
from tailrace.metadata.image.registrations import (
    BrokerRegistration,
    ControllerRegistration,
    Endpoint,
    endpoints_by_name,
    fresh_id,
)
from tailrace.metadata.quorum.served_log import ServedLog
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.metadata.storage.storage_format import bootstrap_records
from tailrace.model.steps import run_steps
from tailrace.protocol import messages
from tailrace.protocol.message import Message
from tailrace.waiting.outbox import Answered, Failed

T = TypeVar("T")
Allowed: TypeAlias = Callable[[str], bool]


def _anything(_: str) -> bool:
    return True


def _any_resource(_: ConfigResource) -> ApiError:
    return NO_ERROR


def _no_broker_check(_: Mapping[str, str], __: bool) -> None:
    """Accept all broker configs, since no broker is there to check them."""


def _ignore_change(_: Change, __: int) -> None:
    """Ignore a change, since no broker has to carry it out."""


class LocalController:
    def __init__(
        self,
        log: MetadataLog,
        static_config: Mapping[str, str],
        *,
        new_id: Callable[[], bytes],
        next_int: NextInt,
        check_broker_config: BrokerCheck = _no_broker_check,
        listener: Callable[[Change, int], None] = _ignore_change,
    ) -> None:
        self.log = log
        self.node_id = log.identity.node_id
        self.configs = EffectiveConfigs(static_config, self.node_id)
        self._listener = listener
        self._new_id: Callable[[], bytes] = partial(fresh_id, new_id)
        self._next_int = next_int
        self._check_broker_config = check_broker_config
        self.tokens = TokenControl(static_config, lambda: self.state, self._commit)
        self.topics = TopicControl(log, lambda: self.state, listener)
        self.create_topics = self.topics.create_topics
        self.create_partitions = self.topics.create_partitions
        self.brokers = BrokerControl(log, lambda: self.state, self._commit, BrokerControlSettings.of(static_config))
        self.served_log = ServedLog(log)
        self.own_broker = OwnBroker(log, self.brokers, lambda: self.state, self._commit)
        self.assign_directories = self.own_broker.assign_directories
        self.directories_online = self.own_broker.directories_online
        self.cordon = self.own_broker.cordon
        self.prepare_stop = self.own_broker.prepare_stop
        self.stop_broker = self.own_broker.stop

    @property
    def image(self) -> MetadataImage:
        return self.log.image

    @property
    def leader_id(self) -> int:
        return self.node_id

    @property
    def broker_epoch(self) -> int:
        """The epoch of this node's broker, or -1 if it has none."""
        broker = self.image.brokers.get(self.node_id)
        return -1 if broker is None else broker.epoch

    @property
    def state(self) -> ControlState:
        """The input of a decision, with the current image."""
        return ControlState(image=self.log.image, configs=self.configs, new_id=self._new_id, next_int=self._next_int)

    def _commit(
        self,
        records: Sequence[Message],
        now_ms: int,
        *,
        atomic: bool = True,
        flush: bool = True,
        name: str | None = None,
    ) -> None:
        if records:
            change = self.log.commit(records, now_ms, atomic=atomic, flush=flush, transaction=name)
            self._listener(change, now_ms)

    def _carry_out(self, plan: Plan[T], now_ms: int, *, atomic: bool = True) -> T:
        self._commit(plan.records, now_ms, atomic=atomic)
        return plan.result

    # Lifecycle

    def begin(self, now_ms: int) -> None:
        """Become the leader under a new epoch; write the first records of the cluster if the log is empty."""
        self.log.begin_epoch(now_ms)
        if self.log.is_empty:
            records = bootstrap_records(self.log.files, self.log.path)
            levels = {getattr(one, "name", ""): getattr(one, "feature_level", 0) for one in records}
            if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0:
                min_isr = str(self.state.static_int("min.insync.replicas"))
                records.append(
                    messages.ConfigRecord(resource_type=ResourceType.BROKER, name="min.insync.replicas", value=min_isr)
                )
            self._commit(records, now_ms, flush=False, name="Bootstrap records")
        self.brokers.begin(now_ms)

    def start_without_broker(self, now_ms: int) -> None:
        """Register this node, which has no broker, as a controller."""
        self._commit(self._controller_records(), now_ms, flush=False)
        self.log.flush(now_ms)

    def _controller_records(self) -> list[Message]:
        """Return the registration of this node as a controller."""
        if not self.image.record_versions.has_controllers:
            return []
        controller = ControllerRegistration(
            id=self.node_id,
            incarnation_id=self._new_id(),
            endpoints=endpoints_by_name(self.log.controller_endpoints),
            features=SUPPORTED,
        )
        return [controller.to_record()]

    def start_broker(
        self,
        endpoints: Sequence[Endpoint],
        *,
        directories: Sequence[bytes],
        rack: str | None = None,
        previous_epoch: int = -1,
        now_ms: int,
    ) -> int:
        """Register and unfence this node's broker; return its epoch. `previous_epoch`: stored by the last clean
        stop."""
        incarnation_id = self._new_id()
        self._commit(self._controller_records(), now_ms, flush=False)
        registration = BrokerRegistration(
            id=self.node_id,
            epoch=-1,
            incarnation_id=incarnation_id,
            endpoints=endpoints_by_name(endpoints),
            features=SUPPORTED,
            rack=rack,
            directories=tuple(directories),
        )
        return self.own_broker.register(registration, previous_epoch, now_ms)

    def not_ready_reason(self) -> str | None:
        """Return None: a node on its own has read its metadata before clients can connect."""
        return None

    def tick(self, now_ms: int) -> bool:
        """Do what is due: decisions that nobody asks for, and maintenance of the log. Return True if more is due."""
        self.own_broker.tick(now_ms)
        self.brokers.tick(now_ms)
        self.tokens.tick(now_ms)
        return self.log.tick(now_ms)

    def next_deadline_ms(self) -> int | None:
        due = (
            self.log.next_deadline_ms(),
            self.tokens.next_sweep_ms,
            self.own_broker.next_deadline_ms(),
            self.brokers.next_deadline_ms(),
        )
        return min((one for one in due if one is not None), default=None)

    def close(self, now_ms: int) -> None:
        self.log.close(now_ms)

    def abandon(self) -> None:
        self.log.abandon()

    # Topics

    def delete_topics(
        self,
        request: messages.DeleteTopicsRequest,
        now_ms: int,
        *,
        may_describe: Allowed = _anything,
        may_delete: Allowed = _anything,
        charge: Charge = free_of_charge,
    ) -> messages.DeleteTopicsResponse:
        plan = plan_delete_topics(self.state, request, may_describe=may_describe, may_delete=may_delete, charge=charge)
        return self._carry_out(plan, now_ms)

    # Configs, quotas, features

    def alter_configs(
        self,
        request: messages.AlterConfigsRequest,
        now_ms: int,
        *,
        may_alter: MayAlter = _any_resource,
        is_at_controller: bool = False,
    ) -> messages.AlterConfigsResponse:
        plan = config_changes.plan_alter_configs(
            self.state,
            request,
            check_broker=self._check_broker_config,
            may_alter=may_alter,
            is_at_controller=is_at_controller,
        )
        return self._carry_out(plan, now_ms)

    def incremental_alter_configs(
        self,
        request: messages.IncrementalAlterConfigsRequest,
        now_ms: int,
        *,
        may_alter: MayAlter = _any_resource,
        is_at_controller: bool = False,
    ) -> messages.IncrementalAlterConfigsResponse:
        plan = config_changes.plan_incremental_alter_configs(
            self.state,
            request,
            check_broker=self._check_broker_config,
            may_alter=may_alter,
            is_at_controller=is_at_controller,
        )
        return self._carry_out(plan, now_ms)

    def alter_client_quotas(
        self, request: messages.AlterClientQuotasRequest, now_ms: int
    ) -> messages.AlterClientQuotasResponse:
        return self._carry_out(client_quotas.plan_alter_client_quotas(self.state, request), now_ms)

    def alter_scram_credentials(
        self, request: messages.AlterUserScramCredentialsRequest, now_ms: int
    ) -> messages.AlterUserScramCredentialsResponse:
        return self._carry_out(scram_credentials.plan_alter_credentials(self.state, request), now_ms)

    def create_acls(self, request: messages.CreateAclsRequest, now_ms: int) -> list[ApiError]:
        return self._carry_out(acls.plan_create_acls(self.state, request), now_ms)

    def remove_acls(self, ids: Iterable[bytes], now_ms: int) -> None:
        self._carry_out(acls.plan_remove_acls(self.state, ids), now_ms)

    def describe_client_quotas(
        self, request: messages.DescribeClientQuotasRequest
    ) -> messages.DescribeClientQuotasResponse:
        return run_steps(client_quotas.describe_client_quotas(self.image, request), 0)

    def update_features(
        self, request: messages.UpdateFeaturesRequest, version: int, now_ms: int
    ) -> messages.UpdateFeaturesResponse:
        plan = feature_updates.plan_update_features(self.state, request, version, self.log.quorum.kraft_version)
        return self._carry_out(plan, now_ms)

    # Replicas

    def elect_leaders(self, request: messages.ElectLeadersRequest, now_ms: int) -> messages.ElectLeadersResponse:
        return self._carry_out(leadership.plan_elect_leaders(self.state, request), now_ms, atomic=False)

    def alter_partition_reassignments(
        self, request: messages.AlterPartitionReassignmentsRequest, now_ms: int
    ) -> messages.AlterPartitionReassignmentsResponse:
        return self._carry_out(reassignment.plan_alter_reassignments(self.state, request), now_ms)

    def list_partition_reassignments(
        self, request: messages.ListPartitionReassignmentsRequest
    ) -> messages.ListPartitionReassignmentsResponse:
        return reassignment.list_reassignments(self.state, request)

    # Other requests

    def allocate_producer_ids(self, now_ms: int) -> range:
        """Allocate a block of producer ids to this node's broker."""
        return self._carry_out(plan_producer_ids(self.state, self.node_id), now_ms)

    def alter_partition(
        self,
        topics: Sequence[messages.AlterPartitionRequest.TopicData],
        answered: Answered,
        failed: Failed,
        now_ms: int,
    ) -> None:
        """Decide soon on ISRs that this node's broker proposes."""
        self.own_broker.alter_partition(topics, answered, failed)

    def unregister_broker(self, broker_id: int, now_ms: int) -> None:
        """Unregister a broker, or raise a KafkaError. This broker itself registers again at once, because it is
        running."""
        self._carry_out(plan_unregister(self.state, broker_id), now_ms, atomic=False)
        self.brokers.unregistered(broker_id)
        if broker_id == self.node_id and self.own_broker.registration is not None:
            self.own_broker.register(self.own_broker.registration, -1, now_ms)

    def add_raft_voter(self, request: messages.AddRaftVoterRequest) -> None:
        raft_voters.add_voter(self.log, request)

    def remove_raft_voter(self, request: messages.RemoveRaftVoterRequest) -> None:
        raft_voters.remove_voter(self.log, request)

    def describe_quorum(
        self, request: messages.DescribeQuorumRequest, version: int, now_ms: int
    ) -> messages.DescribeQuorumResponse:
        return describe_quorum(self.log, self.served_log.observers, request, version, now_ms)
