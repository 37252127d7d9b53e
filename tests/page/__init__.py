"""The status page in Chromium, and its API, of a daemon as users run it.

    browser  a headless Chromium, and the keys that the tests press

The browser is fetched by ``.ci/chromium``.
"""
