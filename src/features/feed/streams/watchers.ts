import type { App } from '../../../app.js';
import { loadMatchers } from '../../../platform/database/database.js';
import type { Following } from '../read-page.js';
import { Watcher } from './watcher.js';

/** The watchers of a process, one for each collection that streams follow. */
export class Watchers {
  readonly #opening = new Map<string, Promise<Watcher>>();
  readonly #open = new Set<Watcher>();

  constructor(private readonly app: App) {}

  /** The watcher of what is followed, by the collection's record that it was opened with. */
  async open({ collection, log }: Following): Promise<Watcher> {
    const key = `${collection._id.toHexString()} ${collection.version}`;
    const known = this.#opening.get(key);
    if (known) return known;
    const opening = Promise.all([loadMatchers(), log.begin()]).then(([openMatcher, start]) => {
      const watcher = new Watcher(this.app, collection, openMatcher, start, (ended) => {
        this.#open.delete(ended);
        if (this.#opening.get(key) === opening) this.#opening.delete(key);
      });
      this.#open.add(watcher);
      return watcher;
    });
    this.#opening.set(key, opening);
    opening.catch(() => this.#opening.delete(key));
    return opening;
  }

  /** How late changes are told of, at worst. */
  lagSeconds(): number {
    return Math.max(0, ...[...this.#open].map((watcher) => watcher.lagSeconds));
  }
}
