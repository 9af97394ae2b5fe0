"""`example`: a profile to try everything on."""

from __future__ import annotations

from pathlib import Path

import click

from advisor.cli.exits import DONE
from advisor.cli.options import HUSH
from advisor.cli.terminal import note


@click.command()
@click.argument("folder", type=click.Path(file_okay=False), metavar="DIR")
@HUSH
def example(folder: str) -> int:
    """Writes an example profile to DIR, which must be new or empty.

    Four ranks of a pipeline-parallel training, one of which computes slowly.
    """
    from advisor.basics.files import copy_folder
    from advisor.basics.resources import resource

    copy_folder(resource("examples", "slow-rank-pipeline"), Path(folder))
    click.echo(folder)
    note(f"now try: advisor advise {folder}")
    return DONE
