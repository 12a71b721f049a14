"""The catalogue of all errors, with the messages that users read.

Each entry says what is wrong and what to do about it. The command line prints it as one line, the
HTTP API puts its code into a problem body, and the documentation refers to it by that code.

>>> from ldpstream.errors import Mistake, Problem
>>> print(Mistake(Problem.EPSILON_RANGE, given="-1"))
epsilon is -1; give a number from 1e-9 to 32
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from string import Formatter


class Problem(Enum):
    """A kind of error: what is wrong and what to do, as templates for the facts of a case."""

    EPSILON_RANGE = ("epsilon is {given}", "give a number from 1e-9 to 32")
    WINDOW_RANGE = ("window is {given}", "give a whole number of timestamps, 1 or more")
    DOMAIN_SIZE = ("the domain has {given} labels", "give 2 to {most}")
    DOMAIN_DUPLICATE = ("label {label!r} appears twice in the domain", "name each label once")
    LABEL_LENGTH = ("a label has {given} characters", "give it at most {most}")
    LABEL_UNKNOWN = ("{label!r} is not a label of this domain", "use one of: {known}")
    VALUE_RANGE = ("value {given} is outside the domain of {labels} labels", "give 0 to {last}")
    ORACLE_UNKNOWN = ("there is no oracle {given!r}", "use one of: {known}")
    MECHANISM_UNKNOWN = ("there is no mechanism {given!r}", "{guess}use one of: {known}")
    SOURCE_UNKNOWN = ("there is no stream {given!r}", "use one of: {known}")
    STREAM_UNKNOWN = (
        "stream {given!r} is unknown, or private and needs a token",
        "send its read token, or use one of: {known}",
    )
    STREAM_PAUSED = (
        "stream {stream} is paused, and takes no reports",
        "nothing to do: ask whether it goes on before the next report",
    )
    STREAM_RETIRED = (
        "stream {stream} has ended, and takes no reports any more",
        "leave it; what it has released can still be read",
    )
    PAUSED_BY_FILE = (
        "stream {stream} is paused or retired by the configuration file",
        "change it there, and reload: ldpstream reload FILE",
    )
    STREAM_PARAMETER = ("{stream} stream: {name} is {given}", "give {expected}")
    TOO_FEW_USERS = (
        "{users} users are too few for a window of {window}: a timestamp would be left without any",
        "give at least {needed} users, or a shorter window",
    )
    BUDGET_TOO_SMALL = (
        "epsilon {epsilon} over a window of {window} leaves less than 1e-9 for each timestamp",
        "give a larger epsilon, or a shorter window",
    )
    TIMESTAMP_ORDER = (
        "timestamp {given} was asked for after {last}",
        "ask for timestamps in increasing order",
    )
    STATE_MISMATCH = (
        "the saved state has {found}, not {expected}",
        "restore it with the settings that it was saved with",
    )
    REPORT_LENGTH = ("a report has {given} bytes", "this oracle's reports have {expected}")
    REPORT_VERSION = ("a report has version {given}", "this collector reads version {expected}")
    REPORT_RANGE = ("a report's {field} is {given}", "it must be {expected}")
    SUPPORT_MISMATCH = (
        "support counts over {left} and {right} labels cannot be added",
        "merge counts of one round only",
    )
    NO_REPORTS = ("there is no estimate from zero reports", "carry the last release over")
    EPSILON_EXCEEDED = (
        "user {user} would have spent {spent} nano-epsilon in {window} timestamps up to t={t}",
        "the limit is {limit}: the mechanism breaks its guarantee",
    )
    ROSTER_EXHAUSTED = (
        "{asked} users are asked for at t={t}, but only {available} are available",
        "the mechanism asks for more users than a window has",
    )
    RUN_TWICE = (
        "the results have two runs of {mechanism} on {stream} with the same settings, seed {seed}"
        " and repeat {repeat}, whose {metric} differs: {figures}",
        "join only results that come from the same code, each once",
    )
    DATA_FILE = ("{file}: {what}", "{fix}")
    DATA_SET_UNKNOWN = ("there is no data set {given!r}", "use one of: {known}")
    DATA_SET_NOT_PREPARED = (
        "the data set {name} is not prepared",
        "get it from {where}, then run: ldpstream data prepare {name} --from PATH",
    )
    PACKAGE_MISSING = ("{what} needs the package {package}", "install it: pip install {package}")
    EXTRA_MISSING = (
        "{what} needs the extra {extra!r}",
        "install it: pip install 'ldpstream[{extra}]'",
    )
    CACHE_FILE = ("{file}: {what}", "delete the file, or name another place in LDPSTREAM_HOME")
    PLUGIN_FILE = ("{file}: {what}", "give a Python file that registers a mechanism")
    WORKER_LOST = (
        "a worker process ended while it ran {task}",
        "if memory ran out, use fewer workers; results so far are kept",
    )
    WORKER_CODE = (
        "a worker has another version of this package",
        "install the same version on every machine of the cluster",
    )
    WORKER_DATA = (
        "a worker of the cluster has no file {file}",
        "let all machines share one LDPSTREAM_HOME, at the same path",
    )
    CLUSTER_LOST = (
        "the connection to the Dask scheduler was lost",
        "start it and run the command again; results so far are kept",
    )
    WORKER_START = (
        "a worker process ended while it was starting",
        "in a script, call run() below: if __name__ == '__main__'",
    )
    CONFIG_FILE = ("{file}, line {line}: {what}", "{fix}")
    SECRET_FILE = ("secret in {file}: {what}", "{fix}")
    COLLECTOR_DIED = (
        "the collector exited with status {status} before it listened for requests",
        "run it by hand to see why: ldpstream serve FILE",
    )
    TERMS_CHANGED = (
        "{file}, line {line}: stream {stream} is stored with {name} = {stored}, but the file says"
        " {given}{why}",
        "restore the old value, which devices have pinned, or {fix}",
    )
    SLOTS_TOO_LATE = (
        "stream {stream} was created without slots, by an earlier release",
        'set selection = "open" or "roster", or give the stream a new name',
    )
    STORE_VERSION = (
        "{file} was written by a newer release (schema {found}, this one knows {known})",
        "upgrade ldpstream, or use a store that this release can read",
    )
    STORE_OLD = (
        "{file} is of an earlier release (schema {found}, this one has {known})",
        "start a collector of this release on it first",
    )
    BACKUP_FILE = ("{file} is not a valid backup: {what}", "give one that ldpstream backup made")
    BACKUP_NEEDS_MASTER = (
        "the backup has no secrets, and its master secret is not in {file}"
        " or LDPSTREAM_MASTER_SECRET",
        "put the secret there first, or give a backup that was made with --secrets",
    )
    RESTORE_OCCUPIED = (
        "{where} already has a store",
        "move it away, or name another place in the configuration",
    )
    STORE_DAMAGED = (
        "{file} cannot be read as a store: {what}",
        "restore a backup, or move the file away to start with an empty store",
    )
    STORE_FILE = (
        "{file} cannot be used as a store: {what}",
        "name a file in a writable folder",
    )
    STORE_LOCKED = ("{file} is in use by another collector", "stop that one first")
    DATABASE = (
        "{where} cannot be used: {what}",
        "check store in the configuration file, the server and its log",
    )
    LOG_UNAVAILABLE = (
        "{where} cannot be used: {what}",
        "check ingest in the configuration file, and that nats-server runs with JetStream (-js)",
    )
    LOG_MISSING = (
        "{file} names no report log, so there is nothing for an engine to count",
        'add ingest = "nats://host:4222" to [collector]',
    )
    ENGINE_ENDED = (
        "the Spark job ended: {what}",
        "see its log, and start it again: it resumes from its checkpoint",
    )
    LEASE_LOST = (
        "another collector holds the lease on stream {stream} now",
        "try again: this collector follows that one from now on",
    )
    MASTER_DIFFERS = (
        "{where} was created with another master secret",
        "put that one into LDPSTREAM_MASTER_SECRET, its master_file, or master.secret in the "
        "store's folder: without it every device must enrol anew, at a new store",
    )
    MASTER_MISSING = (
        "{where} exists, but its master secret is neither in {file} nor in LDPSTREAM_MASTER_SECRET",
        "put the secret back there: without it every device must enrol anew, at a new store",
    )
    MASTER_IN_ENVIRONMENT = (
        "the master secret comes from LDPSTREAM_MASTER_SECRET, so no new one can be written",
        "start every collector with another one in LDPSTREAM_NEW_MASTER_SECRET, then rotate",
    )
    ROTATION_UNDER_WAY = (
        "keys of the previous master secret are still valid",
        "end them first: ldpstream keys drop FILE",
    )
    NOTHING_TO_DROP = (
        "there is no earlier master secret whose keys are still valid",
        "nothing to do: see ldpstream keys status FILE",
    )
    DEVICES_LEFT = (
        "devices may still use keys of the earlier master secret: {what}",
        "wait until there are none, or drop it anyway: those devices must enrol again",
    )
    CHAIN_BROKEN = (
        "stored data of stream {stream} differs from what was released: {what}",
        "restore a backup, or list all damage with: ldpstream audit store FILE "
        "(add --accept to serve the data as it is now)",
    )
    CLOCK_UNCONFIRMED = (
        "the machine's clock is {amount} {side} the time that its steady clock confirms",
        "set it or, if it is right, {first}start the collector again",
    )
    CLOCK_UNSETTLED = (
        "the machine was started just now, and its clock is {amount} {side} the last release",
        "set it or, if it is right, wait: it will be trusted in {seconds} s",
    )
    CLOCKS_DIFFER = (
        "the machine's clock is {amount} {side} that of the database",
        "set the one that is wrong",
    )
    ADDRESS_IN_USE = ("cannot listen on {address}: {what}", "give another listen address")
    ROUND_UNKNOWN = ("there is no round {given!r}", "ask for the current rounds")
    ROUND_CLOSED = ("round {given} is closed", "nothing to do: a late report does not count")
    ROUND_EARLY = (
        "by the collector's clock, round {given} has not begun yet",
        "send the same report again in {seconds} s",
    )
    REPORT_MAC = ("the MAC is wrong", "sign with the key received at enrolment")
    KEY_ENDED = (
        "the device's key comes from a master secret that is no longer valid",
        "enrol the device again: its file and its ledger stay",
    )
    DEVICE_DENIED = (
        "this device is on the stream's deny list",
        "ask whoever runs the collector",
    )
    REPORT_CONFLICT = (
        "this device has already sent a different report in this round",
        "retry with the same bytes only",
    )
    REPORT_NOT_ASKED = (
        "this device is not asked in this round",
        "report only in rounds that list this device or, with slots, in its own",
    )
    DEVICE_VERSION = (
        "the device does not speak protocol 2",
        "update the program on the device: devices of release 0.1.0 can be made to give away more"
        " than epsilon",
    )
    DEVICE_NUMBER = ("the device's number is {given}", "give 32 hex digits, drawn by the device")
    DEVICE_SECRET = (
        "the enrolment secret that the device sent is malformed",
        "send 64 hex digits, as in docs/protocol.md",
    )
    TOKEN = ("the {kind} token is missing or wrong", "send it as Authorization: Bearer <token>")
    TOKEN_ENDED = (
        "the enrolment token {name!r} {what}",
        "ask whoever runs the collector for another one",
    )
    TOKEN_EXISTS = ("there is, or was, an enrolment token {name!r}", "give another name")
    TOKEN_UNKNOWN = (
        "there is no enrolment token {given!r} that can be revoked",
        "list them: ldpstream tokens list FILE",
    )
    RATE_LIMITED = ("{what} arrive too fast", "try again in {seconds} s")
    HTTP_SYNTAX = ("the request is not HTTP/1.1", "send a well-formed request")
    HEAD_TOO_LARGE = (
        "the request line and headers have more than {limit} bytes or {lines} lines",
        "send fewer or shorter headers",
    )
    TOO_LARGE = ("the body has more than {limit} bytes", "send less at once")
    PARAMETER = ("{name} is {given}", "give {expected}")
    NOT_FOUND = ("there is nothing at {given}", "see /openapi.json")
    METHOD = ("the method {given} is not allowed here", "see /openapi.json")
    UNAVAILABLE = ("the collector cannot store anything now", "try again in {seconds} s")
    INTERNAL = ("the collector failed to answer", "try again later; its log says why")
    ALERT_RULE = ("the rule cannot be used: {what}", "{fix}")
    ALERT_RULE_EXISTS = (
        "there is already an alert {name!r} for {about}",
        "replace it, or give another name",
    )
    ALERT_RULE_FIXED = (
        "the rule {name!r} is set in the configuration file",
        "change it there, and restart the collector",
    )
    ALERT_RULE_UNKNOWN = ("there is no rule {given!r}", "list them: GET .../alerts/rules")
    WEBHOOK = ("the webhook did not accept the alert: {what}", "check [collector.alerts] webhook")
    TERMS_MALFORMED = (
        "the collector's terms cannot be accepted: {what}",
        "correct the stream's configuration, or update the program on this device",
    )
    PIN_DIFFERS = (
        "the collector offers terms with the pin {given}, but the expected pin is {expected}",
        "nothing was agreed to; read the pin on the collector's page again, and give that one if"
        " you accept its terms",
    )
    TERMS_DIFFER = (
        "the terms offered have the pin {given}, but those agreed to have {expected}",
        "nothing was sent; if the change is meant, enrol with a new ledger file",
    )
    TERMS_ENDED = (
        "reports under version {version} of the stream's terms were counted until t={t}",
        "fetch the terms that follow them, and accept them; or enrol again",
    )
    TERMS_FORMAT = (
        "the stream's terms have format {needed}, but the device reads formats up to {given}",
        "update the program on the device, then enrol again",
    )
    TERMS_UNKNOWN = (
        "the stream {stream} has no terms with this pin",
        "give the pin that a notice names as the successor, or that of an enrolment",
    )
    LEVEL_UNKNOWN = (
        "the stream {stream} has no level {given}; its levels: {known}",
        "take one of these, or none for the stream's own epsilon and window",
    )
    SUCCESSOR_REFUSED = (
        "the collector offers new terms with the pin {pin}, which are not accepted: {what}",
        "nothing changes for this device, until the collector ends the terms that it has; to accept"
        " them, enrol with accept= a policy that allows them",
    )
    LIMIT_TOO_SMALL = (
        "the limit of {limit} nano-epsilon over all streams is too small: reserves and a report"
        " take {needed}",
        "raise the limit, lower the reserves, or leave a stream",
    )
    LIMIT_SPENT = (
        "the limit over all streams never allows the {asked} nano-epsilon of a report in {stream}",
        "raise the limit, lower other streams' reserves, or leave the stream",
    )
    SEVERAL_STREAMS = (
        "{file} has the streams {streams}",
        "name one: device.stream(name), or device.stream(name, url)",
    )
    STREAM_NOT_ENROLLED = (
        "{file} is not enrolled in {stream}; it has {streams}",
        "call enrol(url, stream, token) once",
    )
    STREAM_ELSEWHERE = (
        "{file} is enrolled in {stream} at {place}, under these or other terms of that stream",
        "if that collector has moved here, enrol with moved_from= its address; otherwise leave it "
        "first",
    )
    ANSWER_MALFORMED = (
        "the collector's answer ({what}) is {given}",
        "check that the address is that of an ldpstream collector",
    )
    ROUND_MALFORMED = ("a round's {field} is {given}", "the collector must follow docs/protocol.md")
    ROUND_AHEAD = (
        "round {round} is for t={t}, but by this device's clock it is t={now}",
        "nothing to do: the device takes the time from the collector's next announcement",
    )
    ROUND_PAST = (
        "round {round} is for t={t}, but by this device's clock it is t={now}",
        "nothing to do: a value is reported only for the timestamp at which it is held",
    )
    BUDGET_SPENT = (
        "round {round} asks for {asked} nano-epsilon at t={t}, but only {left} are left",
        "wait until earlier spends leave the window: ldpstream device status FILE",
    )
    TOO_MANY_ROUNDS = (
        "round {round} is one more than the {most} that this device answers in a window",
        "ask at most twice at a timestamp",
    )
    PAST_UNKNOWN = (
        "the ledger is new, from release 0.1.0, or may be a restored copy: all epsilon counts as "
        "spent",
        "this device is silent until {span} of its own time have passed",
    )
    VALUE_UNUSABLE = (
        "the value to report is {what}",
        "{instead} is reported instead, so that silence reveals nothing; give a value of "
        "the stream",
    )
    LEDGER_FILE = ("{file}: {what}", "the device is silent until its file can be written")
    LEDGER_MISSING = (
        "there is no device in {file}",
        "an installer makes it, once: Device.create(path, first_install=True)",
    )
    LEDGER_EXISTS = (
        "{file} already exists",
        "open the device in it: Device.open(path); if it is empty, delete it first",
    )
    LEDGER_REPLACED = (
        "{file} was replaced by another device's file while this device enrolled",
        "open it again, and enrol",
    )
    NOT_ENROLLED = ("{file} is not enrolled", "call enrol(url, stream, token) once")
    PLAIN_HTTP = (
        "{url} is not encrypted, and whoever reads an enrolment can report in the device's name",
        "use https, or allow plain http where the network is trusted: plain_http=True, "
        "--plain-http",
    )
    UNREACHABLE = (
        "{url} does not answer: {what}",
        "check the address and the network",
    )
    COLLECTOR_REFUSED = ("the collector refused {what}: {status} {code}", "{detail}")
    TARGET_UNREACHABLE = (
        "{mechanism} cannot reach an error of {goal} over a window of {window} with {labels} "
        "labels, whatever the number of users or epsilon",
        "give a larger --target-error, a shorter window or fewer labels",
    )
    SLOTS_MECHANISM = ("selection slots works only with lpu and lpf", "use open or roster")
    LEVELS_MECHANISM = (
        "levels of privacy work only with lpu and lpf",
        "use one of these or, in the laboratory, compare plpd, plpa, plpd+ and plpa+",
    )
    OPTION = ("{option} is {given}", "give {expected}")
    ARGUMENT_UNKNOWN = ("{function}() has no argument {name!r}", "{guess}: {known}")
    ARGUMENT_MISSING = (
        "{function}() needs the argument {name!r}",
        "give it: {function}({name}=...)",
    )

    def __init__(self, message: str, remedy: str) -> None:
        self.message = message
        self.remedy = remedy

    @property
    def code(self) -> str:
        """The stable name of the entry, as it appears in a problem body."""
        return self.name.lower().replace("_", "-")

    @cached_property
    def facts(self) -> frozenset[str]:
        """The names of the facts that its templates need."""
        parts = Formatter().parse(self.message + self.remedy)
        return frozenset(name for _, name, _, _ in parts if name)


class LdpStreamError(Exception):
    """An error of this package: an entry of the catalogue and the facts of the case.

    Its message is composed when it is read: a device that was given no usable value must not take
    time to format it, since that time would reveal it.
    """

    def __init__(self, problem: Problem, /, **facts: object) -> None:
        if missing := problem.facts - facts.keys():
            raise KeyError(*missing)
        self.problem = problem
        self.facts = facts
        super().__init__(problem.code)

    def __str__(self) -> str:
        return f"{self.problem.message}; {self.problem.remedy}".format(**self.facts)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.facts)


class Mistake(LdpStreamError, ValueError):
    """An error that the caller made and can correct."""


class MalformedReport(LdpStreamError, ValueError):
    """Bytes that no honest device of this round sends."""


class GuaranteeBroken(LdpStreamError):
    """The error of a mechanism that would exceed a user's epsilon. It is never caught."""


def _rebuild(
    kind: type[LdpStreamError], problem: Problem, facts: dict[str, object]
) -> LdpStreamError:
    return kind(problem, **facts)
