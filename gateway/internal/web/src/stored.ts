// What the browser keeps for this origin, where anything may have been left.

/** What was stored as JSON under a key, if it is of the kind of the fallback. */
export function stored<T extends object>(storage: Storage, key: string, fallback: T): T {
  try {
    const value: unknown = JSON.parse(storage.getItem(key) ?? "null");
    return typeof value === "object" && value !== null && Array.isArray(value) === Array.isArray(fallback) ? (value as T) : fallback;
  } catch {
    return fallback;
  }
}

/** Stores a value as JSON. One that does not fit is not stored. */
export function store(storage: Storage, key: string, value: object): void {
  try {
    storage.setItem(key, JSON.stringify(value));
  } catch {
    storage.removeItem(key);
  }
}
