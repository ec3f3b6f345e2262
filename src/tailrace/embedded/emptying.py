"""delete_topics: makes a broker empty again, if its topics are all that has changed since its start.

The internal topics are deleted as well. Their coordinators then drop groups, committed offsets, transactions and the
state of share groups, so nothing has to be deleted one by one.
"""

from __future__ import annotations

from dataclasses import replace

from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.image.image import MetadataImage, ResourceType
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import DeleteTopicsRequest


def delete_topics(controller: LocalController, first: MetadataImage, now_ms: int) -> bool:
    """Delete every topic. Return False, having deleted nothing, if other metadata differs from the first image."""
    image = controller.image
    if _without_topics(image) != _without_topics(first):
        return False
    topics = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in image.topics]
    if topics:
        response = controller.delete_topics(DeleteTopicsRequest(topics=topics), now_ms)
        for result in response.responses:
            if result.error_code:
                raise KafkaError(ErrorCode(result.error_code), f"topic {result.name} cannot be deleted")
    return True


def _without_topics(image: MetadataImage) -> MetadataImage:
    """Return the image without topics, and without numbers that only count up."""
    configs = {resource: values for resource, values in image.configs.items() if resource.type != ResourceType.TOPIC}
    return replace(
        image,
        topics={},
        topics_by_id={},
        configs=configs,
        offset=-1,
        epoch=-1,
        timestamp_ms=-1,
        next_producer_id=-1,
    )
