"""Mutations of SQLite files: tables, columns, values, pages, journals, and things an attacker adds."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

from benchmarks.mutants.base import LESS, SAME, mutation, replace_file

Change = Callable[[sqlite3.Connection, Path, Random], str | None]
_ODD = (None, "text", b"\x00\xff", -1, 1 << 62, -(1 << 62), float("inf"), float("nan"), 1e300, "", "x" * 1_000_000)


def sqlite(name: str, effect: str) -> Callable[[Change], None]:
    """Registers a function that changes a database through a connection as the mutation `db.<name>`."""

    def register(change: Change) -> None:
        def apply(path: Path, draw: Random) -> str | None:
            replace_file(path, path.read_bytes())
            connection = sqlite3.connect(path)
            try:
                done = change(connection, path, draw)
                connection.commit()
                return done
            except sqlite3.Error:
                return None
            finally:
                connection.close()

        mutation(f"db.{name}", effect, ".db")(apply)

    return register


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return sorted(row[0] for row in rows)


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]


@sqlite("drop_table", LESS)
def _(connection: sqlite3.Connection, path: Path, draw: Random) -> str | None:
    table = draw.choice(_tables(connection))
    connection.execute(f'DROP TABLE "{table}"')
    return f"without {table}"


@sqlite("empty_table", LESS)
def _(connection: sqlite3.Connection, path: Path, draw: Random) -> str | None:
    table = draw.choice(_tables(connection))
    connection.execute(f'DELETE FROM "{table}"')
    return f"{table} empty"


@sqlite("numbers_as_texts", LESS)
def _(connection: sqlite3.Connection, path: Path, draw: Random) -> str | None:
    """A tool that copied the table wrote all of it as texts."""
    table = draw.choice(_tables(connection))
    columns = _columns(connection, table)
    connection.execute(f'ALTER TABLE "{table}" RENAME TO "copied"')
    connection.execute(f'CREATE TABLE "{table}" ({", ".join(f"{name!r} TEXT" for name in columns)})')
    connection.execute(f'INSERT INTO "{table}" SELECT * FROM "copied"')
    connection.execute('DROP TABLE "copied"')
    return f"all numbers of {table} as texts"


@sqlite("delete_rows", LESS)
def _(connection: sqlite3.Connection, path: Path, draw: Random) -> str | None:
    table = draw.choice(_tables(connection))
    connection.execute(f'DELETE FROM "{table}" WHERE rowid % ? = 0', (draw.choice((2, 3, 7)),))
    return f"rows of {table} deleted"


@sqlite("rename_column", LESS)
def _(connection: sqlite3.Connection, path: Path, draw: Random) -> str | None:
    table = draw.choice(_tables(connection))
    column = draw.choice(_columns(connection, table))
    connection.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "old_{column}"')
    return f"{table}.{column} renamed"


LONG = 10_000
"""Characters from which a text is put into a few rows only."""


@sqlite("odd_values", LESS)
def _(connection: sqlite3.Connection, path: Path, draw: Random) -> str | None:
    table = draw.choice(_tables(connection))
    column = draw.choice(_columns(connection, table))
    odd, every = draw.choice(_ODD), draw.choice((1, 2, 7))
    rows = 20 if len(str(odd)) > LONG else 1 << 40  # a megabyte in each of thousands of rows takes longer than the run
    connection.execute(
        f'UPDATE "{table}" SET "{column}" = ? WHERE rowid % ? = 0 AND rowid <= ?', (odd, every, rows * every)
    )
    return f"{str(odd)[:20]!r} in one row of {every} of {table}.{column}"


@sqlite("view", LESS)
def _(connection: sqlite3.Connection, path: Path, draw: Random) -> str | None:
    """A view without end under a table's name."""
    table = draw.choice(_tables(connection))
    names = ", ".join(f'n AS "{column}"' for column in _columns(connection, table))
    connection.execute(f'DROP TABLE "{table}"')
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
    connection.execute(f'CREATE VIEW "{table}" AS {endless} SELECT {names} FROM c')
    return f"{table} is an endless view"


@sqlite("generated_column", SAME)
def _(connection: sqlite3.Connection, path: Path, draw: Random) -> str | None:
    """A computed column that costs a gigabyte a row where it is read."""
    table = draw.choice(_tables(connection))
    connection.execute(f'ALTER TABLE "{table}" ADD COLUMN extra TEXT AS (hex(zeroblob(500000000))) VIRTUAL')
    return f"{table} has a computed column"


@sqlite("trigger", SAME)
def _(connection: sqlite3.Connection, path: Path, draw: Random) -> str | None:
    table, other = draw.choice(_tables(connection)), draw.choice(_tables(connection))
    connection.execute(f'CREATE TRIGGER t AFTER INSERT ON "{table}" BEGIN DELETE FROM "{other}"; END')
    return f"{table} has a trigger"


@sqlite("duplicate_rows", LESS)
def _(connection: sqlite3.Connection, path: Path, draw: Random) -> str | None:
    table = draw.choice(_tables(connection))
    connection.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}"')
    return f"rows of {table} twice"


@sqlite("hostile_names", SAME)
def _(connection: sqlite3.Connection, path: Path, draw: Random) -> str | None:
    name = draw.choice(('a"b', "a'; DROP TABLE TASK; --", "sqlite", "\x1b[2J", "x" * 5000, "TASK\n"))
    quoted = name.replace('"', '""')
    connection.execute(f'CREATE TABLE "{quoted}" ("c""d" INTEGER)')
    return f"a table called {name[:30]!r}"


@sqlite("wal", SAME)
def _(connection: sqlite3.Connection, path: Path, draw: Random) -> str | None:
    """A journal mode that wants to write beside the file."""
    connection.execute("PRAGMA journal_mode = WAL")
    return "in WAL mode"


@mutation("db.page", LESS, ".db")
def page(path: Path, draw: Random) -> str | None:
    data = bytearray(path.read_bytes())
    if len(data) < 8192:
        return None
    at = draw.randrange(len(data) // 4096) * 4096
    data[at : at + 4096] = draw.randbytes(4096) if draw.random() < 0.5 else bytes(4096)
    replace_file(path, bytes(data))
    return f"page {at // 4096 + 1} spoilt"


@mutation("db.header", LESS, ".db")
def header(path: Path, draw: Random) -> str | None:
    data = bytearray(path.read_bytes())
    for _ in range(3):
        data[draw.randrange(min(100, len(data)))] = draw.randrange(256)
    replace_file(path, bytes(data))
    return "header bytes changed"


@mutation("db.journal", LESS, ".db")
def journal(path: Path, draw: Random) -> str | None:
    kind = draw.choice(("-wal", "-journal", "-shm"))
    beside = path.with_name(path.name + kind)
    magic = bytes.fromhex("d9d505f920a163d7") if kind == "-journal" else bytes.fromhex("377f0682002de218")
    beside.write_bytes(magic + draw.randbytes(4096))
    return f"with {kind} beside it"
