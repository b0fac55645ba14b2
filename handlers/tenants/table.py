"""The one table of the APIs that the clients of instances are served, and of what each needs besides the translation of names.

An API that is not in the table is not served to them: ApiVersions does not list it, and a request for it closes the connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.tenants import acls, configs, hooks, quotas

Check: TypeAlias = "Callable[[Any, RequestContext, Services], Any]"
"""Sees a request; returns a response to refuse it, else None."""
Finish: TypeAlias = "Callable[[Any, Any, RequestContext, Services], None]"
"""Changes a response, given the request."""


class TenantApi(NamedTuple):
    """What an API needs for instances besides the translation of names.

    ``check`` sees the request with the clients' names, ``narrow`` with physical ones; both may change it. ``finish`` sees the response
    once its names are the clients' own. Versions before ``first_version`` are not served.
    """

    check: Check | None = None
    narrow: Check | None = None
    finish: Finish | None = None
    first_version: int = 0


PLAIN = TenantApi()


def _list_served(request: Any, response: Any, context: RequestContext, services: Services) -> None:
    """Leave only the APIs of the table in a response to ApiVersions."""
    served = [versions for versions in response.api_keys if versions.api_key in TENANT_APIS]
    for versions in served:
        versions.min_version = max(versions.min_version, TENANT_APIS[versions.api_key].first_version)
    response.api_keys = [versions for versions in served if versions.min_version <= versions.max_version]


TENANT_APIS: dict[int, TenantApi] = {
    0: PLAIN,  # Produce
    1: PLAIN,  # Fetch
    2: PLAIN,  # ListOffsets
    3: TenantApi(narrow=hooks.narrow_metadata),
    8: PLAIN,  # OffsetCommit
    9: PLAIN,  # OffsetFetch
    10: PLAIN,  # FindCoordinator
    11: TenantApi(check=hooks.require_group),  # JoinGroup
    12: TenantApi(check=hooks.require_group),  # Heartbeat
    13: TenantApi(check=hooks.require_group),  # LeaveGroup
    14: TenantApi(check=hooks.require_group),  # SyncGroup
    15: PLAIN,  # DescribeGroups
    16: PLAIN,  # ListGroups
    17: PLAIN,  # SaslHandshake
    18: TenantApi(finish=_list_served),  # ApiVersions
    22: PLAIN,  # InitProducerId
    29: TenantApi(first_version=acls.FIRST_VERSION),  # DescribeAcls, whose handler knows instances
    30: TenantApi(first_version=acls.FIRST_VERSION),  # CreateAcls
    31: TenantApi(narrow=acls.narrow_deletions, finish=acls.merge_deletions, first_version=acls.FIRST_VERSION),
    32: PLAIN,  # DescribeConfigs, whose handler knows instances
    33: TenantApi(check=configs.refuse_foreign_resources, finish=configs.add_refused),  # AlterConfigs
    36: PLAIN,  # SaslAuthenticate
    38: PLAIN,  # CreateDelegationToken
    39: PLAIN,  # RenewDelegationToken
    40: PLAIN,  # ExpireDelegationToken
    41: PLAIN,  # DescribeDelegationToken, whose handler knows instances
    44: TenantApi(check=configs.refuse_foreign_resources, finish=configs.add_refused),  # IncrementalAlterConfigs
    48: TenantApi(check=quotas.refuse_described_addresses),  # DescribeClientQuotas, whose handler knows instances
    49: TenantApi(check=quotas.refuse_altered_addresses, finish=quotas.add_refused),  # AlterClientQuotas
    50: PLAIN,  # DescribeUserScramCredentials, whose handler knows instances
    51: PLAIN,  # AlterUserScramCredentials
    74: PLAIN,  # ListConfigResources, whose handler knows instances
}
"""By API key."""
