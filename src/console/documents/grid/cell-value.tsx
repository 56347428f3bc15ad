import type { CollectionField } from '../../collection.js';
import { cell, moment } from '../../format.js';

const MAX_TAGS = 4;
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;

/**
 * A stored value in one line, as its type wants it; everything stored is shown as text. It stands in a cell with
 * `dir="auto"`, so that of a long text from right to left the beginning is seen.
 */
export function CellValue({
  field,
  value,
  titles,
}: {
  field: CollectionField;
  value: unknown;
  /** Of documents that Refs name, by id. */
  titles: ReadonlyMap<string, string>;
}) {
  if (value === undefined) return <span class="nothing">–</span>;
  if (value === null) return <span class="nothing">null</span>;
  if (typeof value === 'boolean') return <span class={value ? 'tag good' : 'tag'}>{String(value)}</span>;
  if (typeof value === 'number') return <>{String(value)}</>;
  if (field.enum) return <span class="tag plain">{cell(value)}</span>;
  if (typeof value === 'string') {
    if ((field.type === 'Date' || field.type === 'any') && MOMENT.test(value)) return <>{moment(value)}</>;
    if (value === '') return <span class="nothing">empty text</span>;
    if (field.type !== 'Ref') return <>{cell(value)}</>;
    const title = titles.get(value);
    return title === undefined ? <code>{value}</code> : <>{cell(title)}</>;
  }
  if (!Array.isArray(value)) return <span class="preview">{cell(value)}</span>;
  if (value.length === 0) return <span class="nothing">[ ]</span>;
  const isPlain = value.every((item) => typeof item === 'string' || typeof item === 'number');
  if (!isPlain) return <span class="preview">{cell(value)}</span>;
  return (
    <>
      {value.slice(0, MAX_TAGS).map((item, at) => (
        <span class="tag" key={at} dir="auto">
          {cell(titles.get(String(item)) ?? item, 40)}
        </span>
      ))}
      {value.length > MAX_TAGS && <span class="muted">+{value.length - MAX_TAGS}</span>}
    </>
  );
}
