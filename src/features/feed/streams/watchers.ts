import type { App } from '../../../app.js';
import { loadMatchers } from '../../../platform/database/database.js';
import type { Following } from '../read-page.js';
import { Watcher } from './watcher.js';

/** The watchers of a process, one for each collection that streams follow. */
export class Watchers {
  readonly #opening = new Map<string, Promise<Watcher>>();
  readonly #ready = new Map<string, Watcher>();
  readonly #open = new Set<Watcher>();

  constructor(private readonly app: App) {}

  /** The watcher of what is followed, by the collection's record that it was opened with. */
  async open({ collection, log }: Following): Promise<Watcher> {
    const key = keyOf(collection);
    const known = this.#opening.get(key);
    if (known) return known;
    const opening = Promise.all([loadMatchers(), log.begin()]).then(([openMatcher, start]) => {
      const watcher = new Watcher(this.app, collection, openMatcher, start, (ended) => {
        this.#open.delete(ended);
        if (this.#ready.get(key) === ended) this.#ready.delete(key);
        if (this.#opening.get(key) === opening) this.#opening.delete(key);
      });
      this.#open.add(watcher);
      this.#ready.set(key, watcher);
      return watcher;
    });
    this.#opening.set(key, opening);
    opening.catch(() => this.#opening.delete(key));
    return opening;
  }

  /** The watcher of what is followed when it is open already. */
  peek({ collection }: Following): Watcher | undefined {
    return this.#ready.get(keyOf(collection));
  }

  /** How late changes are told of, at worst. */
  lagSeconds(): number {
    return Math.max(0, ...[...this.#open].map((watcher) => watcher.lagSeconds));
  }
}

function keyOf({ _id, version }: Following['collection']): string {
  return `${_id.toHexString()} ${version}`;
}
