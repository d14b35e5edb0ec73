"""A study of logistic regression on a file in LIBSVM's format, such as a9a: ``python -m studies.logistic --help``."""
