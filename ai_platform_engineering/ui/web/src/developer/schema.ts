// Checks of untrusted JSON against types. A check returns the value with the known fields only, or throws `WrongValue`.

export class WrongValue extends Error {
  constructor(
    readonly path: readonly (string | number)[],
    readonly expected: string,
  ) {
    super(expected);
  }
}

type Path = readonly (string | number)[];
export type Check<T> = (value: unknown, path: Path) => T;

export const text: Check<string> = (value, path) => {
  if (typeof value !== "string") throw new WrongValue(path, "a text");
  return value;
};

export const flag: Check<boolean> = (value, path) => {
  if (typeof value !== "boolean") throw new WrongValue(path, "true or false");
  return value;
};

export const finite: Check<number> = (value, path) => {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new WrongValue(path, "a number");
  return value;
};

export const integer: Check<number> = (value, path) => {
  if (!Number.isInteger(value)) throw new WrongValue(path, "a whole number");
  return value as number;
};

export const object: Check<Record<string, unknown>> = (value, path) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new WrongValue(path, "an object");
  return value as Record<string, unknown>;
};

export const fieldValue: Check<string | number | boolean | string[] | null> = (value, path) => {
  if (value === null || ["string", "number", "boolean"].includes(typeof value)) return value as string | number | boolean | null;
  return listOf(text)(value, path);
};

export function oneOf<T extends string>(...values: T[]): Check<T> {
  return (value, path) => {
    const found = values.find((one) => one === value);
    if (found === undefined) throw new WrongValue(path, values.map((one) => `"${one}"`).join(", "));
    return found;
  };
}

export function orNull<T>(check: Check<T>): Check<T | null> {
  return (value, path) => (value === null ? null : check(value, path));
}

export function listOf<T>(check: Check<T>): Check<T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) throw new WrongValue(path, "a list");
    return value.map((one, place) => check(one, [...path, place]));
  };
}

type Fields = Record<string, Check<unknown>>;
type Checked<F extends Fields> = { [K in keyof F]: F[K] extends Check<infer T> ? T : never };

/** An object with these fields; a field of `optional` may be missing. Other fields are dropped. */
export function record<R extends Fields, O extends Fields>(required: R, optional: O): Check<Checked<R> & Partial<Checked<O>>> {
  return (value, path) => {
    const given = object(value, path);
    const found: Record<string, unknown> = {};
    for (const [name, check] of Object.entries(required)) {
      if (!Object.hasOwn(given, name)) throw new WrongValue([...path, name], "present");
      found[name] = check(given[name], [...path, name]);
    }
    for (const [name, check] of Object.entries(optional)) {
      if (Object.hasOwn(given, name)) found[name] = check(given[name], [...path, name]);
    }
    return found as Checked<R> & Partial<Checked<O>>;
  };
}
