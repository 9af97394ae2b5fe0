"""`trust`: folders whose configuration may name programs to run."""

from __future__ import annotations

import click

from advisor.cli.exits import DONE
from advisor.cli.options import HUSH
from advisor.cli.terminal import inert, note


@click.command()
@click.argument("folder", required=False, type=click.Path(), metavar="[DIR]")
@click.option("--remove", is_flag=True, help="Trust it no longer.")
@HUSH
def trust(folder: str | None, remove: bool) -> int:
    """Trusts the configuration in DIR and the programs it names there.

    Kept in your own configuration. Holds for DIR itself, not for folders below. Without DIR: what is trusted.
    """
    from advisor import trust as trusting

    if folder is None:
        for each in sorted(trusting.trusted_folders()):
            click.echo(inert(str(each)))
        return DONE
    chosen = trusting.trust(folder, withdraw=remove)
    note(f"{chosen}: {'no longer trusted' if remove else 'trusted'}")
    return DONE
