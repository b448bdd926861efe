"""What the printed figures of the CORN paper are really of: sentences for below its tables.

They were found by comparing the paper with its published code and the accuracies in its logs with
the sizes of its published subsets: an accuracy must be a multiple of 1 / n.
"""

SWAPPED = (
    "The printed figures of MORPH-2 and AFAD are of the subsets of 5 % (1,815 and 2,457 rows), "
    "with the epoch chosen on those of 20 %: the published settings swap validation and test. "
    "`--subsets published` does the same; Fireman and AES are not swapped."
)
EPOCHS = "The published image runs of CORN had 50 epochs (nine of ten), those of its rivals 200."
PERSONS = (
    "MORPH-2 is divided by image: 3,790 of the 4,801 persons in its test subset are in training, "
    "too; `--persons` keeps them apart. The 20,625 images of the paper are its training subset."
)
COPIED_ROW = "The printed row of CORN on Fireman repeats that of OR-NN; the logs are shown."
MASK = "The published mask leaves the examples of the lowest class out of every task."
ABLATION_SUBSETS = (
    "The two columns compare different rows: CORN's runs on MORPH-2 and AFAD are on the 5 % "
    "subset, those without subsets, which are not swapped, on the 20 % one. One of the five "
    "MORPH-2 runs without subsets (seed 0) names the script of plain CORN."
)
ABLATION_AES = (
    "The printed 0.68 on AES is at chance: the logs are of three balanced classes (1,494 training "
    "and 288 test rows) with accuracies of 33 to 36 %, though the paper says that AES was not "
    "balanced. Of CORN's 0.43 beside it there is no log, so that nobody can say which rows it is "
    "of. `reproduce aes-resnet34` and `aes-balanced` run both."
)
HYPERPARAMETERS_AES = (
    "In the paper's table for AES the second row called CORAL is CORN. Three of its four runs had "
    "batches of 54, where the table says 64; recipe `paper` has the table's."
)
VGG16 = (
    "The printed figures are of torchvision's VGG16 with batch normalisation, where the paper "
    "names the plain one (`--backbone timm:vgg16`), and of a division of 80/5/15, where it "
    "says 75/5/20."
)
AES_LOGS = (
    "The logs differ from the printed table: CORN on animals and people has 0.28 and 0.29 "
    "(printed 0.26), CE on animals and people 0.27 (printed 0.28 and 0.29)."
)
SHUFFLED_RANKS = (
    "The published scripts number the labels by how often they occur, so that the ranks are "
    "shuffled, and their LSTM reads its padding: the published errors are far above what the "
    "data allow."
)
TEXT_DIVISIONS = (
    "The published runs on texts have another division for each seed (`--divisions seeds`), of "
    "68/12/20, where the paper says 75/5/20."
)
