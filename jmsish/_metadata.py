"""What a connection says of this library and of the broker (jms rule 24)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jmsish._version import VERSION
from jmsish.client.connection import ClientConnection
from jmsish.profiles import Profile, missing_at


class ConnectionMetaData:
    """What this library is, and what the broker says of itself."""

    jms_version = "3.1"
    jms_major_version = 3
    jms_minor_version = 1
    jms_provider_name = "jmsish"
    provider_version = VERSION
    provider_major_version, provider_minor_version = (int(number) for number in VERSION.split(".")[:2])
    jmsx_property_names: tuple[str, ...] = ("JMSXDeliveryCount", "JMSXGroupID", "JMSXGroupSeq", "JMSXUserID")

    def __init__(self, core: ClientConnection) -> None:
        remote = core.remote
        self.remote_container_id: str | None = remote.container_id if remote else None
        self.remote_properties: Mapping[str, Any] = dict(remote.properties or {}) if remote else {}
        self.remote_capabilities: tuple[str, ...] = tuple(remote.offered_capabilities) if remote else ()
        self.profile: Profile = core.profile
        """What kind of broker it is, as found or as the option ``profile`` says."""
        said = self.remote_properties
        self.broker_product: str = str(said.get("product") or core.profile.title)
        self.broker_version: str | None = str(said["version"]) if said.get("version") else None
        self.missing: Mapping[str, str] = missing_at(core.profile, self.remote_capabilities)
        """What the broker does not do: features, each with a sentence that says so."""
