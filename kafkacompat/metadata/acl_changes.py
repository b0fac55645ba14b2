"""Changes of access rules (ACLs), by the rules of Kafka's controller, on a draft."""

from __future__ import annotations

from collections.abc import Sequence

from kafkacompat.metadata.draft import MetadataDraft, check_change_count
from kafkacompat.security.acls.filters import AclFilter
from kafkacompat.security.acls.model import Acl
from kafkacompat.security.acls.table import AclTable, RuleSet, group_acls
from kafkacompat.wire.errors import KafkaError


def create_acls(draft: MetadataDraft, acls: Sequence[Acl]) -> None:
    """Add rules; one that exists already is no error. Raises KafkaError POLICY_VIOLATION for too many."""
    check_change_count(len(acls))
    known = draft.acls
    draft.put_rules(
        {pattern: RuleSet(known.rules_of(pattern).rules | added.rules) for pattern, added in group_acls(acls).items()}
    )


def delete_acls(draft: MetadataDraft, filters: Sequence[AclFilter]) -> list[list[Acl] | KafkaError]:
    """Remove the rules that filters select; returns them for each filter, or the error of a filter that is not valid.

    Raises KafkaError POLICY_VIOLATION for too many.
    """
    results = [_find_selected(draft.acls, selection) for selection in filters]
    deleted = {acl for result in results if isinstance(result, list) for acl in result}
    check_change_count(len(deleted))
    known = draft.acls
    draft.put_rules(
        {pattern: RuleSet(known.rules_of(pattern).rules - gone.rules) for pattern, gone in group_acls(deleted).items()}
    )
    return results


def _find_selected(table: AclTable, selection: AclFilter) -> list[Acl] | KafkaError:
    try:
        selection.check()
    except KafkaError as problem:
        return problem.with_traceback(None)
    return list(selection.find(table))
