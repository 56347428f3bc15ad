import type { CollectionField } from '../../collection.js';
import type { Filter } from './filter-text.js';

/** Conditions of a list as a `$match`, for what lists cannot say. Dates and ids are texts there too. */
export function matchOf(filters: readonly Filter[], fields: readonly CollectionField[]): Record<string, unknown> {
  const conditions = filters.map(([name, value]) => {
    const [, path = name, suffix = ''] = /^(.*?)(_gte?|_lte?|_ne|_in|_exists|_startswith|_regex)?$/.exec(name) ?? [];
    const type = fields.find((field) => field.name === path.split('.')[0])?.type;
    const read = (text: string): unknown =>
      type === 'Number' && text.trim() !== '' ? Number(text) : type === 'Boolean' ? text === 'true' : text;
    if (suffix === '') return { [path]: read(value) };
    if (suffix === '_exists') return { [path]: { $exists: value === 'true' } };
    if (suffix === '_in') return { [path]: { $in: value.split(',').map(read) } };
    const escaped = value.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    if (suffix === '_startswith') return { [path]: { $regex: `^${escaped}` } };
    if (suffix === '_regex') return { [path]: { $regex: value, $options: 'i' } };
    return { [path]: { [`$${suffix.slice(1)}`]: read(value) } };
  });
  return conditions.length === 0 ? {} : { $and: conditions };
}
