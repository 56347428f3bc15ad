import { deserialize } from 'bson';
import type { WatchedChange } from '../../changes/change-log.js';
import type { Group } from './group.js';

type ByText = Map<string, Set<Group>>;

/** Finds the groups that a change may concern: by owner and by the texts that they ask for, not one by one. */
export class GroupIndex {
  readonly #owned: ByText = new Map();
  readonly #byField = new Map<string, ByText>();
  readonly #others = new Set<Group>();

  constructor(private readonly ownerField: string | null) {}

  add(group: Group): void {
    const places = this.#placesOf(group);
    if (!places) this.#others.add(group);
    else for (const { place, text } of places) place.set(text, (place.get(text) ?? new Set<Group>()).add(group));
  }

  remove(group: Group): void {
    this.#others.delete(group);
    for (const { place, text } of this.#placesOf(group) ?? []) {
      place.get(text)?.delete(group);
      if (place.get(text)?.size === 0) place.delete(text);
    }
  }

  #placesOf({ ownerId, keys }: Group): { place: ByText; text: string }[] | null {
    if (ownerId !== null) return [{ place: this.#owned, text: ownerId }];
    if (!keys) return null;
    return keys.map(({ field, text }) => {
      const place = this.#byField.get(field) ?? new Map<string, Set<Group>>();
      this.#byField.set(field, place);
      return { place, text };
    });
  }

  find({ document, earlier, owners }: WatchedChange): Set<Group> {
    const found = new Set(this.#others);
    if (this.#owned.size === 0 && this.#byField.size === 0) return found;
    const versions = [...(document ? [{ bytes: document, isPartial: false }] : []), ...(earlier ?? [])].map(
      ({ bytes, isPartial }) => ({ fields: deserialize(bytes, { validation: { utf8: false } }), isPartial }),
    );
    const take = (groups: Set<Group> | undefined): void => groups?.forEach((group) => found.add(group));
    if (this.ownerField !== null && this.#owned.size > 0) {
      const values = [...versions.map(({ fields }) => fields[this.ownerField!] as unknown), ...owners];
      for (const text of values.flatMap(textsOf)) take(this.#owned.get(text));
    }
    for (const [field, place] of this.#byField) {
      // What is not known counts as met.
      const isUnknown =
        earlier === null || versions.some(({ fields, isPartial }) => isPartial && !Object.hasOwn(fields, field));
      if (isUnknown) for (const groups of place.values()) take(groups);
      else for (const { fields } of versions) for (const text of textsOf(fields[field])) take(place.get(text));
    }
    return found;
  }
}

/** The texts that a value is equal to for the database: itself, or items of the list that it is. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
