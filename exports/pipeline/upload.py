"""Upload: a rendered task in, its artifact in the store and the task succeeded. The last stage.

A store that fails is tried again after 1, 4 and 16 s, then the task fails in phase upload with everything kept.
A segment that turns out damaged sends the task back to render.
"""

import hashlib
from collections.abc import Iterator

import dramatiq

from exports import storage
from exports.contracts import Step
from exports.errors import SegmentDamaged
from exports.pipeline import endings, steps
from exports.pipeline.steps import Holding
from exports.state.replies import Claim
from exports.state.store import store
from exports.storage import recipe as recipes
from exports.storage.recipe import Piece


def upload_task(held: Holding) -> None:
    """Write the artifact and publish it. Doing it twice writes the same bytes to the same name."""
    claim = held.claim
    recipe = storage.spool().read_recipe(claim.ref.id, sha256=claim.sha256)

    def read(offset: int, length: int) -> Iterator[bytes]:
        digest = hashlib.sha256()
        for chunk in recipes.read(recipe, offset, length, read_segment=lambda piece: _segment(claim, piece)):
            held.check()
            digest.update(chunk)
            yield chunk
        if length == recipe.size and digest.hexdigest() != recipe.sha256:
            raise SegmentDamaged(())

    storage.artifacts().put(claim.object_key, size=recipe.size, read=read)
    # A cancel that came first takes the artifact away again.
    endings.settle(claim.ref.id, claim.request, store().publish(claim))


def _segment(claim: Claim, piece: Piece) -> Iterator[bytes]:
    try:
        yield from storage.spool().read(claim.ref.id, piece)
    except (OSError, EOFError) as error:
        raise SegmentDamaged(()) from error


@dramatiq.actor(actor_name=Step.UPLOAD, queue_name="finish")
def upload() -> None:
    steps.run_slice(Step.UPLOAD, upload_task)
