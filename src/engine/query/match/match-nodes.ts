import type { Doc } from '../../codec/document.js';
import type { LeafPredicate, Predicate } from './match-operators.js';
import type { Scope } from '../operators/operator.js';
import { type Path, visitPath } from '../values/path.js';
import { fieldOf } from '../values/value.js';

/** A part of a compiled filter that tests documents. */
export interface Node {
  test(doc: Doc, scope: Scope): boolean;
  /** The array position that made the document match, -1 for none. */
  locate(doc: Doc, scope: Scope): number;
}

/** Every one of the nodes; the last array position counts. */
export function conjunction(nodes: readonly Node[]): Node {
  if (nodes.length === 1) return nodes[0]!;
  return {
    test(doc, scope) {
      for (const node of nodes) if (!node.test(doc, scope)) return false;
      return true;
    },
    locate(doc, scope) {
      let found = -1;
      for (const node of nodes) {
        const index = node.locate(doc, scope);
        if (index >= 0) found = index;
      }
      return found;
    },
  };
}

/** Any of the nodes, the first that matches counting. */
export function disjunction(nodes: readonly Node[]): Node {
  return {
    test(doc, scope) {
      for (const node of nodes) if (node.test(doc, scope)) return true;
      return false;
    },
    locate(doc, scope) {
      const node = nodes.find((candidate) => candidate.test(doc, scope));
      return node === undefined ? -1 : node.locate(doc, scope);
    },
  };
}

/** A predicate of the values at a path, entering arrays as MongoDB does. */
export function pathNode(path: Path, predicate: Predicate): Node {
  switch (predicate.kind) {
    case 'and':
      return conjunction(predicate.parts.map((part) => pathNode(path, part)));
    case 'not': {
      const inner = pathNode(path, predicate.part);
      return { test: (doc, scope) => !inner.test(doc, scope), locate: () => -1 };
    }
    case 'leaf':
      return leafNode(path, predicate);
  }
}

/** A single test of the values at a path, as pathNode makes of several. */
export function leafNode(path: Path, predicate: LeafPredicate): Node {
  const { single, leafArrays } = predicate;
  const locate = (doc: Doc): number => {
    let found = -1;
    visitPath(doc, path, leafArrays, (value, index) => {
      if (!single(value)) return false;
      found = index < 0 ? (predicate.position?.(value) ?? -1) : index;
      return true;
    });
    return found;
  };
  const [name] = path as [string];
  if (path.length > 1) {
    const visit = (value: unknown) => single(value);
    return { test: (doc) => visitPath(doc, path, leafArrays, visit), locate };
  }
  if (!leafArrays) return { test: (doc) => single(fieldOf(doc, name)), locate };
  return {
    test(doc) {
      const value = fieldOf(doc, name);
      if (!Array.isArray(value)) return single(value);
      for (const item of value) if (single(item)) return true;
      return single(value);
    },
    locate,
  };
}
