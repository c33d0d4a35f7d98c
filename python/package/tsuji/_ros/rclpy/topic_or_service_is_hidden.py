HIDDEN_TOPIC_PREFIX = "_"
TOPIC_SEPARATOR_STRING = "/"


def topic_or_service_is_hidden(name):
    """Whether a part of the name begins with an underscore."""
    return any(it.startswith(HIDDEN_TOPIC_PREFIX) for it in name.split(TOPIC_SEPARATOR_STRING) if it)
