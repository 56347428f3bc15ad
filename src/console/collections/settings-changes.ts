import type { DeclaredField } from '../collection.js';
import type { CollectionSettings } from './use-settings.js';

/** Only what was changed is sent: what rules say of access stays as it is. The owner field goes with the access. */
export function changedOf(before: CollectionSettings, after: CollectionSettings): Partial<CollectionSettings> {
  const changed: Partial<CollectionSettings> = Object.fromEntries(
    Object.entries(after).filter(
      ([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key as keyof CollectionSettings]),
    ),
  );
  return changed.ownerField === undefined || !after.access ? changed : { ...changed, access: after.access };
}

/** The changes between two settings, a line each. */
export function describeChanges(before: CollectionSettings, after: CollectionSettings): string[] {
  const old = new Map(before.fields.map((field) => [field.name, field]));
  const kept = new Set(after.fields.map(({ name }) => name));
  const ofFields = after.fields.flatMap((field) => {
    const known = old.get(field.name);
    if (!known) return [`+ field ${show(field)}`];
    return show(known) === show(field) ? [] : [`field ${show(known)} → ${show(field)}`];
  });
  return [
    ...ofFields,
    ...before.fields
      .filter(({ name }) => !kept.has(name))
      .map((field) => `− field ${show(field)}: its values stay stored`),
    ...after.indexes.filter((index) => !before.indexes.includes(index)).map((index) => `+ index ${index}`),
    ...before.indexes.filter((index) => !after.indexes.includes(index)).map((index) => `− index ${index}`),
    ...(before.mode === after.mode ? [] : [`mode ${before.mode} → ${after.mode}`]),
    ...(presentAccess(before) === presentAccess(after)
      ? []
      : [`access ${presentAccess(before)} → ${presentAccess(after)}`]),
  ];
}

const presentAccess = ({ access = 'server-only', ownerField }: CollectionSettings): string =>
  ownerField === undefined ? access : `${access} by ${ownerField}`;

function show({ name, type, ...more }: DeclaredField): string {
  const marks = Object.entries<unknown>(more).map(([mark, value]) =>
    value === true ? mark : `${mark} ${JSON.stringify(value)}`,
  );
  return [`${name}: ${type}`, ...marks].join(', ');
}
