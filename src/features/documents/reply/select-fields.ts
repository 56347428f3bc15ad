type Tree = Map<string, Tree | null>;

/**
 * The document with only the named paths and `_id`, arrays looked through, as the database projects. No path may lie
 * inside another one.
 */
export function selectFields(document: Record<string, unknown>, paths: readonly string[]): Record<string, unknown> {
  const tree: Tree = new Map([['_id', null]]);
  for (const path of paths) {
    const parts = path.split('.');
    let node = tree;
    for (const part of parts.slice(0, -1)) {
      let inner = node.get(part);
      if (!inner) node.set(part, (inner = new Map()));
      node = inner;
    }
    node.set(parts.at(-1)!, null);
  }
  return selectTree(document, tree);
}

function selectTree(document: Record<string, unknown>, tree: Tree): Record<string, unknown> {
  const selected: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(document)) {
    const inner = tree.get(name);
    if (inner === undefined) continue;
    const kept = inner === null ? value : selectInside(value, inner);
    if (kept !== undefined) selected[name] = kept;
  }
  return selected;
}

function selectInside(value: unknown, tree: Tree): unknown {
  if (Array.isArray(value)) return value.map((item) => selectInside(item, tree)).filter((item) => item !== undefined);
  const plain = typeof value === 'object' && value !== null && !(value instanceof Date) && !('_bsontype' in value);
  return plain ? selectTree(value as Record<string, unknown>, tree) : undefined;
}

/** A projection of these paths for the database; of two where one contains the other, the wider. */
export function projectionOf(paths: readonly string[]): Record<string, 1> {
  return Object.fromEntries(widest(['_id', ...paths]).map((path) => [path, 1]));
}

/** The paths without those that lie inside another one, each once. */
export function widest(paths: readonly string[]): string[] {
  return [...new Set(paths)].filter((path) => !paths.some((other) => path.startsWith(`${other}.`)));
}
