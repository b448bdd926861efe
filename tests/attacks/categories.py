"""The categories of attacks, and how many cases each has at least."""

from tests.attacks.checkpoints import checkpoints
from tests.attacks.harness import Category
from tests.attacks.images import images
from tests.attacks.inputs import inputs
from tests.attacks.models import damaged_models, forged_models
from tests.attacks.options import options
from tests.attacks.run_folders import run_folders
from tests.attacks.security import proofs

_ALL = (
    Category("damaged models", 1000, 40, damaged_models),
    Category("forged models", 1500, 90, forged_models),
    Category("run folders", 700, 25, run_folders),
    Category("checkpoints", 400, 25, checkpoints),
    Category("options", 600, 40, options),
    Category("input files", 250, 40, inputs),
    Category("images", 60, 30, images),
)
CATEGORIES = {category.name: category for category in _ALL}
PROOFS = Category("security", 0, 0, proofs)  # of the sentences of SECURITY.md
