"""The options that say where a log is and, in an object store, how to get at it.

pyarrow's words in the spelling of Spark's options; those that Hadoop's connector has a name for are known by it, too.
What is not said, credentials above all, is looked for in the environment of each worker, as the store's own tools do.
"""

from __future__ import annotations

from tailrace.object_stores.address import GOOGLE, Place, WrongAddress, parse_place
from tailrace.object_stores.settings import StoreSettings
from tailrace.spark.option_values import OptionValues
from tailrace.spark.source.errors import WrongOption

_HADOOP = {
    "endpointOverride": "fs.s3a.endpoint",
    "region": "fs.s3a.endpoint.region",
    "accessKey": "fs.s3a.access.key",
    "secretKey": "fs.s3a.secret.key",
    "sessionToken": "fs.s3a.session.token",
    "roleArn": "fs.s3a.assumed.role.arn",
}
STORE_OPTIONS = (*_HADOOP, *_HADOOP.values(), "anonymous")
_AMAZON_ONLY = ("region", "accessKey", "secretKey", "sessionToken", "roleArn")


def place_of(options: OptionValues) -> Place | None:
    """What `path` names; None without one."""
    given = options.get("path")
    said = {name: _said(options, name) for name in _HADOOP}
    settings = StoreSettings(
        endpoint_override=said["endpointOverride"],
        region=said["region"],
        access_key=said["accessKey"],
        secret_key=said["secretKey"],
        session_token=said["sessionToken"],
        role_arn=said["roleArn"],
        anonymous=options.flag("anonymous"),
    )
    if given is None:
        place = None
    else:
        try:
            place = parse_place(given, settings)
        except WrongAddress as error:
            raise WrongOption(
                f"path takes a directory that every worker can see, or an address such as s3://bucket/prefix: {error}"
            ) from None
    if place is None or place.settings is None:
        for name in options.given_of([name.lower() for name in STORE_OPTIONS]):
            options.warnings.append(f"{name} has no effect: it is for a path in an object store")
    else:
        _check(place.path.partition("://")[0], said, place.settings)
    return place


def _said(options: OptionValues, name: str) -> str | None:
    own, hadoop = options.get(name), options.get(_HADOOP[name])
    if own is not None and hadoop is not None and own != hadoop:
        raise WrongOption(f"{name} and {_HADOOP[name]} are the same option, and say different things")
    return own if own is not None else hadoop


def _check(scheme: str, said: dict[str, str | None], settings: StoreSettings) -> None:
    if (settings.access_key is None) != (settings.secret_key is None):
        raise WrongOption("accessKey and secretKey belong together, and only one of them is given")
    if settings.session_token is not None and settings.access_key is None:
        raise WrongOption("sessionToken belongs to an accessKey and a secretKey, and they are not given")
    if settings.anonymous and settings.access_key is not None:
        raise WrongOption("anonymous means without keys, and accessKey gives one")
    for name in _AMAZON_ONLY if scheme in GOOGLE else ():
        if said[name] is not None:
            raise WrongOption(
                f"{name} is for s3://; Google's store takes the credentials of its own tools "
                "(GOOGLE_APPLICATION_CREDENTIALS), or anonymous"
            )
