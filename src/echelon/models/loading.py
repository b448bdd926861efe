"""Opening a saved model: the class by the kind that the file names, and then its own rebuilding."""

from pathlib import Path
from typing import Any

from echelon._version import __version__
from echelon.models.document import FORMAT_VERSION, KEY, read_parameters, restore
from echelon.models.table import MODELS, model_class
from echelon.storage.bundle import read_bundle
from echelon.storage.regular import NotRegularError


def load(path: str | Path) -> Any:
    """Read a saved model. Opening a stranger's file runs no code of theirs.

    Parameters
    ----------
    path : str or Path
        What `save` of any model, or ``echelon fit``, wrote.

    Returns
    -------
    CurveClassifier
        The model, of the class that it was saved from.

    Examples
    --------
    >>> import tempfile, echelon
    >>> data = echelon.data.make_friedman(200, num_classes=3)
    >>> model = echelon.CumulativeLinkModel().fit(data.features, data.ranks)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.echelon")
    ...     opened = echelon.load(f"{folder}/model.echelon")
    >>> (opened.predict(data.features) == model.predict(data.features)).all()
    np.True_
    """
    try:
        bundle = read_bundle(path, KEY)
    except FileNotFoundError:
        raise ValueError(f"there is no model {path}") from None
    except NotRegularError as error:
        raise ValueError(f"{error}; name a model that `save` or `echelon fit` wrote") from None
    document = bundle.document
    if not isinstance(document, dict) or type(document.get("format")) is not int:
        raise ValueError(f"{path} is damaged: it does not say what format it has")
    if document["format"] != FORMAT_VERSION:
        older = document["format"] < FORMAT_VERSION
        raise ValueError(
            f"{path} was written by echelon {document.get('echelon')} in format "
            f"{document['format']}; this is {__version__}, which reads {FORMAT_VERSION}: "
            + ("fit the model anew" if older else "install a newer echelon")
        )
    bundle.require_whole()
    try:
        kind = document["kind"]
        if not isinstance(kind, str) or kind not in MODELS or not MODELS[kind].saves:
            raise ValueError(f"there is no kind of model {kind!r} that is saved")
        made = model_class(kind)
        model = made(**read_parameters(document["parameters"], made))
        restore(model, document, bundle.tensors)
    except Exception as error:  # torch, timm and transformers raise almost anything
        reason = f"{type(error).__name__}: {error}" if isinstance(error, LookupError) else error
        raise ValueError(f"{path} does not describe a model: {reason}") from None
    return model
