"""The options that all commands for a cluster share. This module imports no more than click."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Function = TypeVar("Function", bound=Callable[..., Any])
Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]

BOOTSTRAP_VARIABLE = "KAFKACOMPAT_BOOTSTRAP_SERVER"


class Target(NamedTuple):
    """The cluster of a command as the options name it, and the form of the output."""

    bootstrap: str
    command_config: Path | None = None
    as_json: bool = False


def connection_options(help_text: str) -> Callable[[Function], Function]:
    """Return the options --bootstrap-server, which *help_text* describes, and --command-config."""

    def add_options(function: Function) -> Function:
        function = click.option(
            "--command-config",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Properties of a client, as Kafka's tools take them: security.protocol, ssl.* and sasl.*.",
        )(function)
        return click.option(
            "--bootstrap-server",
            "bootstrap",
            metavar="HOST:PORT,...",
            required=True,
            envvar=BOOTSTRAP_VARIABLE,
            show_envvar=True,
            help=help_text,
        )(function)

    return add_options


json_option = click.option("--json", "as_json", is_flag=True, help="Write one line of JSON instead of tables.")


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --bootstrap-server, --command-config and --json, which the command receives as its first argument, a Target."""

    @wraps(function)
    def call_with_target(bootstrap: str, command_config: Path | None, as_json: bool, **options: Any) -> Any:
        return function(Target(bootstrap, command_config, as_json), **options)

    return connection_options("Brokers of the cluster.")(json_option(call_with_target))


def complete_nothing(*_: object) -> list[CompletionItem]:
    """Return no names, for arguments that a shell does not complete."""
    return []


def name_options(
    noun: str, complete: Complete, *, is_required: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Take names as arguments and as --NOUN, the option of Kafka's tools; the command receives the list *names*."""

    def add_options(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call_with_names(*arguments: Any, names: Iterable[str], named: Iterable[str], **options: Any) -> Any:
            merged = list(dict.fromkeys([*names, *named]))
            if is_required and not merged:
                raise click.UsageError(f"name a {noun.replace('-', ' ')}")
            return function(*arguments, names=merged, **options)

        argument = click.argument("names", metavar=f"[{noun.upper()}]...", nargs=-1, shell_complete=complete)
        return argument(
            click.option(
                f"--{noun}",
                "named",
                multiple=True,
                metavar=noun.upper(),
                shell_complete=complete,
                help=f"A {noun}, as Kafka's tools take it. May be given many times.",
            )(call_with_names)
        )

    return add_options


def topic_option(complete: Complete) -> Callable[[Function], Function]:
    """Return the option --topic of a command whose first argument may be the topic as well."""
    text = "The topic, as Kafka's tools take it, instead of the first argument."
    return click.option("--topic", "named_topic", metavar="TOPIC", shell_complete=complete, help=text)


def choice_option(option: str, name: str, choices: Sequence[str], help_text: str) -> Callable[[Function], Function]:
    """Add an option that takes some of *choices* as the argument *name*, a tuple."""
    kind = click.Choice(choices, case_sensitive=False)
    return click.option(option, name, multiple=True, type=kind, help=f"{help_text} May be given many times.")


def require_topic_name(name: str | None) -> str:
    """Return the topic of a command; raises click.UsageError without one."""
    if not name:
        raise click.UsageError("name a topic")
    return name


def parse_pairs(texts: Iterable[str], option: str) -> list[tuple[str, str]]:
    """Read NAME=VALUE of each text, with all spaces and repeated names; raises click.UsageError."""
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{option} {text} is not of the form NAME=VALUE")
        pairs.append((name, value))
    return pairs


def parse_settings(texts: Iterable[str], option: str) -> dict[str, str]:
    """Read NAME=VALUE of each text, without spaces around both; raises click.UsageError, also for a repeated name."""
    settings: dict[str, str] = {}
    for name, value in parse_pairs(texts, option):
        if name.strip() in settings:
            raise click.UsageError(f"{option} gives {name.strip()} twice")
        settings[name.strip()] = value.strip()
    return settings


def merge_changes(added: Mapping[str, str], deleted: Iterable[str]) -> dict[str, str | None]:
    """Return settings to change, None for those to delete; raises click.UsageError for one that is in both."""
    changes: dict[str, str | None] = dict(added)
    for name in deleted:
        if name in added:
            raise click.UsageError(f"{name} is both set and deleted: choose one")
        changes[name] = None
    return changes
