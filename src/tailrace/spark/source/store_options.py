"""Options for the location of a log and, in an object store, for access to it.

The names are pyarrow's, spelled like options of Spark. The names of Hadoop's connector are accepted as well. Omitted
ones, such as credentials, are read from the environment of each worker, as the store's own tools do.
"""

from __future__ import annotations

from tailrace.object_stores.settings import StoreSettings
from tailrace.object_stores.store_address import GOOGLE, Place, WrongAddress, parse_place
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


def place_of(options: OptionValues, name: str = "path") -> Place | None:
    """Return the location in an option, by default `path`; None without one."""
    given = options.get(name)
    given_values = {name: _given_value(options, name) for name in _HADOOP}
    settings = StoreSettings(
        endpoint_override=given_values["endpointOverride"],
        region=given_values["region"],
        access_key=given_values["accessKey"],
        secret_key=given_values["secretKey"],
        session_token=given_values["sessionToken"],
        role_arn=given_values["roleArn"],
        anonymous=options.flag("anonymous"),
    )
    if given is None:
        place = None
    else:
        try:
            place = parse_place(given, settings)
        except WrongAddress as error:
            raise WrongOption(
                f"{name} must be a directory that every worker sees, or an address such as s3://bucket/prefix: {error}"
            ) from None
    if place is None or place.settings is None:
        for one in options.given_of([one.lower() for one in STORE_OPTIONS]):
            options.warnings.append(f"{one} has no effect: it is for a path in an object store")
    else:
        _check(place.path.partition("://")[0], given_values, place.settings)
    return place


def _given_value(options: OptionValues, name: str) -> str | None:
    own, hadoop = options.get(name), options.get(_HADOOP[name])
    if own is not None and hadoop is not None and own != hadoop:
        raise WrongOption(f"{name} and {_HADOOP[name]} are the same option, but have different values")
    return own if own is not None else hadoop


def _check(scheme: str, given_values: dict[str, str | None], settings: StoreSettings) -> None:
    if (settings.access_key is None) != (settings.secret_key is None):
        raise WrongOption("accessKey and secretKey must be set together, but only one of them is")
    if settings.session_token is not None and settings.access_key is None:
        raise WrongOption("sessionToken needs accessKey and secretKey, and they are not set")
    if settings.anonymous and settings.access_key is not None:
        raise WrongOption("anonymous and accessKey cannot be set together")
    for name in _AMAZON_ONLY if scheme in GOOGLE else ():
        if given_values[name] is not None:
            raise WrongOption(
                f"{name} is for s3:// only; Google's store uses the credentials of its own tools "
                "(GOOGLE_APPLICATION_CREDENTIALS), or anonymous"
            )
