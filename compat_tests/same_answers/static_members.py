"""Scripts about static members (KIP-345): they return in every state of a group, and fence others."""

from __future__ import annotations

from compat_tests.same_answers.classic_members import (
    Member,
    join_generation,
    make_company,
    make_protocols,
    note_description,
    sync_generation,
)
from compat_tests.same_answers.transcript import Transcript
from kafkacompat.wire.apis.leave_group import MemberIdentity

SHORT_MS = 700


def name_them(*members: Member) -> None:
    for member in members:
        member.instance_id = member.joining["group_instance_id"] = f"instance-{member.name}"


def restart_member(member: Member, **joining: object) -> Member:
    """The same instance in another process, which knows no member id."""
    return Member(member.script, member.group, member.name, **member.joining | joining)


def is_fenced(label: str, member: Member, topic: str) -> None:
    """Note the responses to a member id that another process has replaced."""
    member.is_alive(label, topic)
    member.is_refused(label)
    member.leaves(label)


def static_members_come_back(script: Transcript, name: str) -> None:
    """Without a rebalance, as long as nothing changes that the group has agreed on."""
    script.create_topic(name)
    with make_company(script, name, "a", "b") as (a, b):
        name_them(a, b)
        join_generation("met", a, b)
        sync_generation("met", a, b)
        for version in (5, 8, 9):
            label = f"version {version}"
            with restart_member(b, version=version) as follower, restart_member(a, version=version) as leader:
                follower.joins(f"{label}, follows")
                is_fenced(f"{label}, followed", b, name)
                follower.syncs(f"{label}, follows")
                leader.joins(f"{label}, leads")
                is_fenced(f"{label}, led", a, name)
                leader.syncs(f"{label}, leads")
                follower.is_alive(f"{label}, follows on", name)
                a.member_id, a.generation = leader.member_id, leader.generation
                b.member_id, b.generation = follower.member_id, follower.generation
        b.member_id = ""
        b.joins("with other metadata", protocols=make_protocols("c", "range"))
        note_description(script, "with other metadata", name)
        a.beats("with other metadata")
        b.joins("unchanged, with its id", protocols=make_protocols("c", "range"))
        a.beats("unchanged, with its id")
        b.is_refused("with an unknown name", group_instance_id="instance-x")
        b.is_refused("with another's name", group_instance_id=a.instance_id)
        b.member_id = ""
        b.ask_to_join(protocols=make_protocols("b", "roundrobin", "range"))
        b.joined("prefers another protocol that the group has not")
        a.beats("prefers another protocol that the group has not")


def static_members_change_the_vote(script: Transcript, name: str) -> None:
    """A rebalance follows where the group would choose another protocol."""
    with make_company(script, name, "a", "b") as (a, b):
        name_them(a, b)
        a.joining["protocols"] = make_protocols("a", *"xy")
        b.joining["protocols"] = make_protocols("b", *"xy")
        join_generation("met", a, b)
        sync_generation("met", a, b)
        with restart_member(b, protocols=make_protocols("b", "y")) as back:
            back.ask_to_join()
            a.hears_of_it()
            a.ask_to_join()
            a.joined("y")
            back.joined("y")
            sync_generation("y", a, back)


def static_members_come_back_at_bad_times(script: Transcript, name: str) -> None:
    """While members join, and between join and sync."""
    script.create_topic(name)
    with make_company(script, name, "a", "b", "c") as (a, b, c):
        name_them(a, b)
        join_generation("met", a, b)
        b.ask_to_sync()
        with restart_member(b) as later, restart_member(a) as leader:
            later.ask_to_join()
            b.synced("awaits its assignment")
            is_fenced("awaited its assignment", b, name)
            a.hears_of_it()
            leader.ask_to_join()
            leader.joined("both again")
            later.joined("both again")
            is_fenced("led", a, name)
            sync_generation("both again", leader, later)
            c.ask_to_join()
            leader.hears_of_it()
            later.ask_to_join()
            with restart_member(b) as latest:
                latest.ask_to_join()
                later.joined("waits for others")
                is_fenced("waited for others", later, name)
                note_description(script, "preparing", name)
                leader.ask_to_join()
                for member in (leader, latest, c):
                    member.joined("all")
                sync_generation("all", leader, latest, c)
                note_description(script, "all", name)


def static_members_stay_away(script: Transcript, name: str) -> None:
    """A late member stays until it does not sync either."""
    script.create_topic(name)
    with make_company(script, name, "a", "b", "c", rebalance_timeout_ms=SHORT_MS) as (a, b, c):
        name_them(a, b)
        join_generation("met", a, b, c)
        sync_generation("met", a, b, c)
        a.joins("the others do not")
        note_description(script, "the others do not", name)
        c.beats("dynamic")
        b.beats("static")
        a.syncs("the others do not", a, b)
        a.hears_of_it()
        b.is_alive("late", name)
        note_description(script, "late", name)
        a.joins("alone")
        a.takes_out("taken out", MemberIdentity(group_instance_id=a.instance_id))
        is_fenced("was taken out", a, name)
        note_description(script, "taken out", name)


SCRIPTS = (
    static_members_come_back,
    static_members_change_the_vote,
    static_members_come_back_at_bad_times,
    static_members_stay_away,
)
