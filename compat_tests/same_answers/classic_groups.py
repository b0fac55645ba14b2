"""Scripts about classic groups of several members: rebalances, votes, members that are late, silent or too many."""

from __future__ import annotations

from compat_tests.same_answers.classic_members import (
    Member,
    join_generation,
    look_at,
    make_company,
    make_protocols,
    note_description,
    sync_generation,
)
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkacompat.wire.apis.join_group import JoinGroupResponse
from kafkacompat.wire.apis.leave_group import MemberIdentity
from kafkacompat.wire.errors import ErrorCode

SHORT_MS = 700


def rebalances(script: Transcript, name: str) -> None:
    """Two members through every state that a group can be in."""
    script.create_topic(name)
    with make_company(script, name, "a", "b") as (a, b):
        a.joins("alone")
        a.syncs("alone", a)
        b.ask_to_join()
        a.hears_of_it()
        a.is_alive("asked to join", name)
        a.commits("for the one who joins", name, member_id=b.member_id)
        note_description(script, "preparing", name)
        a.ask_to_join()
        a.joined("together")
        b.joined("together")
        a.beats("unassigned")
        a.commits("unassigned", name)
        a.joins("unassigned, again")
        b.joins("unassigned, again")
        note_description(script, "completing", name)
        script.ask("delete", DeleteGroupsRequest(groups_names=[name]), DeleteGroupsResponse, 2)
        b.ask_to_sync()
        a.syncs("nothing for the other", a)
        b.synced("assigned nothing")
        b.is_alive("with nothing", name)
        note_description(script, "stable", name)
        b.joins("unchanged")
        a.beats("none of its business")
        b.ask_to_join(protocols=make_protocols("c", "range"))
        a.hears_of_it()
        a.ask_to_join()
        a.joined("changed")
        b.joined("changed")
        b.ask_to_sync()
        a.leaves("while the other waits")
        b.synced("unassigned")
        a.is_alive("left", name)
        b.joins("left alone")
        b.syncs("left alone", b)
        b.leaves("last")
        b.is_alive("left", name)
        note_description(script, "empty", name)
        a.is_refused("with an old id")
        a.member_id = ""
        a.joins("anew")


def leader_rebalances(script: Transcript, name: str) -> None:
    """A leader that joins again, and one that has nothing new between join and sync."""
    with make_company(script, name, "a", "b") as (a, b):
        join_generation("met", a, b)
        sync_generation("met", a, b)
        a.ask_to_join(reason="there are new partitions")
        b.hears_of_it()
        b.ask_to_join()
        a.joined("led")
        b.joined("led")
        sync_generation("led", a, b)
        note_description(script, "led", name)


def votes(script: Transcript, name: str) -> None:
    """The protocol that members agree on, and members that share none."""
    with make_company(script, name, "a", "b", "c", "d") as (a, b, c, d):
        for member, names in ((a, "xy"), (b, "yx"), (c, "xyz"), (d, "z")):
            member.joining["protocols"] = make_protocols(member.name, *names)
        join_generation("x", a, b, c)
        sync_generation("x", a, b, c)
        d.is_refused("nothing in common")
        d.is_refused("nothing that all have", protocols=make_protocols("d", "z", "q"))
        d.is_refused("another type", protocols=make_protocols("d", "x"), protocol_type="connect")
        d.is_refused("no type", protocols=make_protocols("d", "x"), protocol_type="")
        d.is_refused("nothing at all", protocols=[])
        c.is_refused("nothing in common any more", protocols=make_protocols("c", "z"))
        c.syncs("another protocol", protocol_name="y")
        c.syncs("another type", protocol_type="connect")
        c.syncs("neither", protocol_name=None, protocol_type=None)
        d.member_id = d.wanted_id(protocols=make_protocols("d", *"zy"))
        d.leaves("what it can is enough")
        a.ask_to_join(protocols=make_protocols("a", *"yx"))
        for member in (b, c):
            member.hears_of_it()
            member.ask_to_join()
        for member in (a, b, c):
            member.joined("y")
        sync_generation("y", a, b, c)
        b.ask_to_join(protocols=make_protocols("b", "x"))
        for member in (a, c):
            member.hears_of_it()
            member.ask_to_join(protocols=make_protocols(member.name, *"yx"))
        for member in (a, b, c):
            member.joined("only x")


def members_on_their_way(script: Transcript, name: str) -> None:
    """Members that were given an id and have not joined with it (KIP-394)."""
    script.create_topic(name)
    with make_company(script, name, "a", "b", "p") as (a, b, p):
        p.member_id = p.wanted_id()
        p.is_alive("alone on its way", name)
        note_description(script, "one on its way", name)
        p.leaves("on its way")
        p.leaves("gone")
        p.is_refused("with an id that is gone")
        a.joins("alone")
        a.syncs("alone", a)
        p.member_id = ""
        p.member_id = p.wanted_id()
        a.beats("one is on its way")
        b.ask_to_join()
        a.hears_of_it()
        a.ask_to_join()
        p.is_alive("on its way", name)
        p.leaves("waited for")
        a.joined("not waited any longer")
        b.joined("not waited any longer")
        sync_generation("not waited any longer", a, b)
        p.member_id = ""
        p.member_id = p.wanted_id(session_timeout_ms=SHORT_MS)
        b.leaves("another is on its way")
        a.joins("while it did not come")
        p.is_refused("too late")
        a.syncs("alone again", a)
        p.member_id = ""
        p.member_id = p.wanted_id()
        p.leaves("of a group that is stable")
        a.beats("one left that never came")


def silent_members(script: Transcript, name: str) -> None:
    """A session that ends."""
    script.create_topic(name)
    with make_company(script, name, "a", "b") as (a, b):
        b.joining["session_timeout_ms"] = SHORT_MS
        join_generation("met", a, b)
        sync_generation("met", a, b)
        a.hears_of_it()
        b.is_alive("silent", name)
        note_description(script, "silent", name)
        a.joins("alone")
        a.syncs("alone", a)
        note_description(script, "alone", name)


def late_members(script: Transcript, name: str) -> None:
    """Members that do not join or sync within the rebalance timeout are removed; another one becomes the leader."""
    script.create_topic(name)
    with make_company(script, name, "a", "b", rebalance_timeout_ms=SHORT_MS) as (a, b):
        join_generation("met", a, b)
        sync_generation("met", a, b)
        a.joins("the other does not")
        a.syncs("alone", a)
        b.is_alive("did not join", name)
        b.member_id = ""
        b.ask_to_join()
        b.joined("the leader does not")
        a.is_alive("did not join", name)
        b.syncs("leads", b)
        a.member_id = ""
        meet_again(b, a)
        b.joined("both")
        a.joined("both")
        b.syncs("both", a, b)
        b.hears_of_it()
        a.is_alive("did not sync", name)
        note_description(script, "one did not sync", name)
        a.member_id = ""
        meet_again(b, a)
        b.joined("both again")
        a.joined("both again")
        a.syncs("the leader does not")
        b.is_alive("did not sync", name)
        a.joins("alone at last")


def meet_again(leader: Member, newcomer: Member) -> None:
    newcomer.ask_to_join()
    leader.hears_of_it()
    leader.ask_to_join()


def full_group(script: Transcript, name: str) -> None:
    """No more members than group.max.size, which is 4: those who are in, or while members join those who have."""
    with make_company(script, name, "a", "b", "c", "d", "e", "p", version=3) as (a, b, c, d, e, p):
        c.version, c.instance_id = 5, "c"
        c.joining["group_instance_id"] = "c"
        p.version = 9
        join_generation("full", a, b, c, e)
        sync_generation("full", a, b, c, e)
        d.is_refused("one too many")
        p.is_refused("one too many")
        d.is_refused("an id that nobody was given", member_id="d-1")
        c.is_refused("static and back without its id", member_id="")
        b.joins("unchanged")
        a.ask_to_join()
        b.hears_of_it()
        p.member_id = p.wanted_id()
        d.ask_to_join()
        until(lambda: len(look_at(script, name).members) == 5)
        b.ask_to_join()
        e.ask_to_join()
        other_type = c.request(protocol_type="other")
        until(lambda: c.client.call(other_type, JoinGroupResponse, 5).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED)
        c.is_refused("the last one")
        p.leaves("on its way")
        for member in (a, b, d, e):
            member.joined("full again")
        note_description(script, "full again", name)


def departures(script: Transcript, name: str) -> None:
    """Members that leave, or are taken out, several at a time."""
    with make_company(script, name, "a", "s", "p") as (a, s, p):
        s.instance_id = s.joining["group_instance_id"] = "instance-s"
        a.leaves("no such group")
        a.takes_out("nobody of no group")
        join_generation("met", a, s)
        sync_generation("met", a, s)
        a.takes_out("no members")
        a.takes_out("nobody", MemberIdentity())
        a.takes_out("of another name", MemberIdentity(member_id=a.member_id, group_instance_id=s.instance_id))
        a.takes_out("of an unknown name", MemberIdentity(member_id=a.member_id, group_instance_id="x"))
        a.takes_out("by an unknown name", MemberIdentity(group_instance_id="x"))
        a.beats("nobody has left")
        p.member_id = p.wanted_id()
        several = [
            MemberIdentity(member_id=p.member_id, group_instance_id="x"),
            MemberIdentity(group_instance_id=s.instance_id),
            MemberIdentity(group_instance_id=s.instance_id),
            MemberIdentity(member_id=p.member_id),
        ]
        a.takes_out("several", *several)
        a.beats("several have left")
        note_description(script, "several have left", name)
        a.joins("alone")
        note_description(script, "alone", name)


SCRIPTS = (
    rebalances,
    leader_rebalances,
    votes,
    members_on_their_way,
    silent_members,
    late_members,
    full_group,
    departures,
)
