"""The formulas once more, for one row at a time, with 60 digits and nothing clever.

Written from the papers and the documentation; shares no code with the library.
"""

from itertools import pairwise

from mpmath import betainc, binomial, erfc, exp, expm1, factorial, log, mp, mpf, sqrt

mp.dps = 60


def sigmoid(z):
    return 1 / (1 + exp(-z))


def normal_cdf(x):
    return erfc(-x / sqrt(mpf(2))) / 2


def softplus(x):
    return log(1 + exp(x))


def cloglog_cdf(x):
    return -expm1(-exp(x))


def probabilities(name, row, num_classes, link="logit", form="slopes", leaves="softmax"):
    """P(y = k) of one row of logits, as a list of numbers with 60 digits."""
    z = [mpf(value) for value in row]
    classes = range(num_classes)
    if name == "unimodal":
        z = _unimodal_logs(z, num_classes, form)
    if name == "forest" and leaves == "bernoulli":
        above, below = z[: num_classes - 1], z[num_classes - 1 :]
        name, z = "ornn", [a - b for a, b in zip(above, below, strict=True)]
    if name in ("ce", "sord", "cnnpor", "rps", "oll", "unimodal", "forest"):
        total = sum(exp(value) for value in z)
        return [exp(value) / total for value in z]
    if name in ("corn", "corn_without_subsets"):
        reached, result = mpf(1), []
        for value in z:
            result.append(reached * sigmoid(-value))
            reached *= sigmoid(value)
        return [*result, reached]
    if name in ("ornn", "coral"):
        above = [mpf(1), *sorted((sigmoid(value) for value in z), reverse=True), mpf(0)]
        return [above[k] - above[k + 1] for k in classes]
    if name == "margin":
        scale, cuts = softplus(z[-1]), [z[0]]
        for step in z[1:-1]:
            cuts.append(cuts[-1] + softplus(step))
        return _between([scale * cut for cut in cuts], sigmoid, lambda x: sigmoid(-x))
    if name in ("ranking", "diffsort"):
        name, z = "clm", z[1:]
    if name == "clm":
        cdf = {"logit": sigmoid, "probit": normal_cdf, "cloglog": cloglog_cdf}[link]
        cuts = [z[0]]
        for step in z[1:]:
            cuts.append(cuts[-1] + softplus(step))
        # The upper tail has a function of its own: with 60 digits 1 - 1e-1000 would be 1.
        survival = {
            "logit": lambda x: sigmoid(-x),
            "probit": lambda x: normal_cdf(-x),
            "cloglog": lambda x: exp(-exp(x)),
        }[link]
        return _between(cuts, cdf, survival)
    assert name == "regression"
    value, sigma = z[0], exp(z[1])
    cuts = [(k + mpf("0.5") - value) / sigma for k in range(num_classes - 1)]
    return _between(cuts, normal_cdf, lambda x: normal_cdf(-x))


def _between(cuts, cdf, survival):
    result = [cdf(cuts[0])]
    for lower, upper in pairwise(cuts):
        if lower + upper > 0:  # the side on which both numbers are small
            result.append(survival(lower) - survival(upper))
        else:
            result.append(cdf(upper) - cdf(lower))
    return [*result, survival(cuts[-1])]


def _unimodal_logs(z, num_classes, form):
    classes = range(num_classes)
    if form == "slopes":
        slopes = [softplus(value) for value in z]
        return [min(sum(slopes[: k + 1]), sum(slopes[k:])) for k in classes]
    temperature = exp(z[1])
    if form == "binomial":
        n, p = num_classes - 1, sigmoid(z[0])
        logs = [log(binomial(n, k)) + k * log(p) + (n - k) * log(sigmoid(-z[0])) for k in classes]
    else:
        mean = softplus(z[0])
        logs = [k * log(mean) - mean - log(factorial(k)) for k in classes]
    return [value / temperature for value in logs]


def _density(density, rank, num_classes):
    assert density in ("beta", "triangular")
    n, middle = num_classes, (rank + mpf("0.5")) / num_classes
    if density == "triangular":
        own, other = mpf("0.98"), mpf("0.01")
        if rank in (0, n - 1):
            root = sqrt(mpf("0.02"))
            share = own * root * (root - 1) * (1 if rank == 0 else mpf((n - 1) ** 2) / n**2)
            other = ((1 - sqrt(1 - 4 * share)) / 2) ** 2
            own = 1 - other
        return [own if k == rank else other if abs(k - rank) == 1 else mpf(0) for k in range(n)]
    size = 4 * n**2 * middle * (1 - middle) - 1
    a, b = middle * size, (1 - middle) * size
    a, b = (mpf(1), mpf(2 * n - 2)) if rank == 0 else (a, b)
    a, b = (mpf(2 * n - 2), mpf(1)) if rank == n - 1 else (a, b)
    return [betainc(a, b, mpf(k) / n, mpf(k + 1) / n, regularized=True) for k in range(n)]


def _margins(z, rank, tasks, options):
    penalty = {
        "hinge": lambda m: max(0, 1 - m),
        "smooth_hinge": lambda m: 0 if m >= 1 else (1 - m) ** 2 / 2 if m > 0 else mpf(1) / 2 - m,
        "squared_hinge": lambda m: max(0, 1 - m) ** 2,
        "logistic": lambda m: softplus(-m),
    }[options.get("penalty", "hinge")]
    loss, cut = mpf(0), z[0]
    for k in tasks:
        if options.get("thresholds") != "immediate" or k in (rank - 1, rank):
            loss += penalty(-cut if rank > k else cut)
        if k + 1 < len(tasks):
            cut += softplus(z[k + 1])
    return loss


def _forest_loss(z, rank, tasks, options):
    if options.get("criterion") == "nll":
        return -z[rank]
    if options.get("leaves") == "bernoulli":
        return -sum(z[k] if rank > k else z[len(tasks) + k] for k in tasks)
    p = [exp(value) for value in z]
    return -sum(log(sum(p[k + 1 :]) if rank > k else sum(p[: k + 1])) for k in tasks)


def row_loss(name, row, rank, num_classes, **options):
    """The loss of one row, without weights; for methods that have one."""
    z = [mpf(value) for value in row]
    tasks = range(num_classes - 1)
    if name == "regression":
        return (z[0] - rank) ** 2
    if name == "margin":
        return _margins(z, rank, tasks, options)
    if name in ("ornn", "coral", "corn", "corn_without_subsets"):
        loss = mpf(0)
        for k in tasks:
            active = {
                "corn": rank >= k,
                "corn_without_subsets": rank > 0 or options.get("mask") != "published",
            }.get(name, True)
            if active:
                loss -= log(sigmoid(z[k]) if rank > k else sigmoid(-z[k]))
        return loss
    if name == "forest":
        return _forest_loss(z, rank, tasks, options)
    form = options.get("form", "slopes")
    p = probabilities(name, row, num_classes, options.get("link", "logit"), form)
    if name == "oll":
        others = [(k, sum(q for j, q in enumerate(p) if j != k)) for k in range(num_classes)]
        margin, share = mpf(options.get("margin", 0)), mpf(options.get("ce_share", 0))
        power = mpf(options.get("power", "1.5"))
        oll = -sum(
            abs(rank - k) ** power * log(min(1, rest + margin)) for k, rest in others if k != rank
        )
        return (1 - share) * oll - share * log(p[rank])
    if name in ("ce", "clm", "unimodal"):
        return -log(p[rank])
    if name == "rps":
        return sum((sum(p[k + 1 :]) - (rank > k)) ** 2 for k in tasks)
    assert name == "sord"
    if "density" in options:
        target = _density(options["density"], rank, num_classes)
        return -sum(t * log(q) for t, q in zip(target, p, strict=True))
    power = 2 if options.get("distance") == "squared" else 1
    temperature = mpf(options.get("temperature", 1))
    target = [exp(-(mpf(abs(rank - k)) ** power) / temperature) for k in range(num_classes)]
    return -sum(t * log(q) for t, q in zip(target, p, strict=True)) / sum(target)
