"""Every use of a private or undocumented part of a dependency, one module per dependency.

Each has a contract test in `tests/compat/` that fails with the name of the part when an upgrade changes it. No other
package imports a private name of another library, and this package imports nothing of the product.
"""
