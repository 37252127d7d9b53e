"""All kinds of the corpus."""

from tests.contract.corpus import Kind
from tests.contract.corpus.topics import chunks, encryption, messages, published, schemas
from tests.contract.corpus.topics import transactions as transactional

KINDS: list[Kind] = [
    *published.KINDS,
    *messages.KINDS,
    *schemas.KINDS,
    *chunks.KINDS,
    *transactional.KINDS,
    *encryption.KINDS,
]
