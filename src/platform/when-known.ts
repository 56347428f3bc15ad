type Known<T extends readonly unknown[]> = { -readonly [K in keyof T]: Awaited<T[K]> };

/** What `make` makes of values of which some may take time: at once where none does. */
export function whenKnown<const T extends readonly unknown[], R>(
  values: T,
  make: (known: Known<T>) => R,
): R | Promise<R> {
  return values.some((value) => value instanceof Promise)
    ? Promise.all(values).then((known) => make(known as Known<T>))
    : make(values as Known<T>);
}
