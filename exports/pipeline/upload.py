"""Upload: a rendered task in, its artifact and its manifest in the store and the task succeeded. The last stage.

A store that fails is tried again after 1, 4 and 16 s, then the task fails in phase upload with everything kept.
A segment that turns out damaged sends the task back to render.
"""

from collections.abc import Iterator, Mapping

import dramatiq

from exports import storage
from exports.contracts import OpenUpload, Step, StoredPart
from exports.errors import SegmentDamaged
from exports.pipeline import endings, manifest, steps
from exports.pipeline.steps import Holding
from exports.state.replies import Claim
from exports.state.store import store
from exports.storage import recipe as recipes
from exports.storage.base import NoRecord, Source
from exports.storage.recipe import Piece


def upload_task(held: Holding) -> None:
    """Write artifact and manifest and publish them. Doing it twice writes the same bytes to the same names."""
    claim = held.claim
    recipe = storage.spool().read_recipe(claim.ref.id, sha256=claim.sha256)

    def read(offset: int, length: int) -> Iterator[bytes]:
        for chunk in recipes.read(recipe, offset, length, read_segment=lambda piece: _segment(claim, piece)):
            held.check()
            yield chunk

    source = Source(recipe.size, recipe.sha256, read)
    storage.artifacts().put(claim.object_key, source, record=ClaimedParts(held))
    held.check()
    proof = Source.of(recipe.manifest.encode())
    storage.artifacts().put(manifest.key(claim.object_key), proof, record=NoRecord())
    # Where a cancel came first, the sweep takes the artifact away again.
    endings.settle(claim.ref.id, claim.request, store().publish(claim))


def _segment(claim: Claim, piece: Piece) -> Iterator[bytes]:
    try:
        yield from storage.spool().read(claim.ref.id, piece)
    except (OSError, EOFError) as error:
        raise SegmentDamaged(()) from error


class ClaimedParts:
    """The parts of an upload, recorded under the claim that holds it. Raises, all methods: LeaseLost, TaskStopped."""

    def __init__(self, held: Holding) -> None:
        self._held = held

    def check(self) -> None:
        self._held.renew()

    def begun(self) -> tuple[OpenUpload, Mapping[int, StoredPart]] | None:
        return store().upload(self._held.claim.ref.id)

    def begin(self, upload: OpenUpload) -> None:
        self._held.hear(store().begin_upload(self._held.claim, upload))

    def add(self, upload: OpenUpload, number: int, part: StoredPart) -> None:
        self._held.hear(store().record_part(self._held.claim, upload, number=number, part=part))


@dramatiq.actor(actor_name=Step.UPLOAD, queue_name="finish")
def upload() -> None:
    steps.run_slice(Step.UPLOAD, upload_task)
