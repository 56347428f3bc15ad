import type { CollectionField } from '../../collection.js';
import { cell } from '../../format.js';
import type { Mapping, ReadFile } from './read-file.js';

/** Where each column of a file goes, with what stands in its first row. */
export function MappingTable({
  file,
  mapping,
  fields,
  onMapping,
}: {
  file: ReadFile;
  mapping: Mapping;
  fields: readonly CollectionField[];
  onMapping: (next: Mapping) => void;
}) {
  return (
    <div class="scroll" role="region" aria-label="Columns of the file" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Column</th>
            <th scope="col">First row</th>
            <th scope="col">Field</th>
          </tr>
        </thead>
        <tbody>
          {file.columns.map((column) => {
            const chosen = mapping.get(column) ?? null;
            const names = [...new Set([...fields.map(({ name }) => name), ...(chosen === null ? [] : [chosen])])];
            return (
              <tr key={column}>
                <th scope="row">{column}</th>
                <td dir="auto">{cell(file.sample(column), 60)}</td>
                <td>
                  <select
                    aria-label={`Field for ${column}`}
                    value={chosen ?? ''}
                    onChange={({ currentTarget: { value } }) =>
                      onMapping(new Map(mapping).set(column, value === '' ? null : value))
                    }
                  >
                    <option value="">Leave it out</option>
                    {names.map((name) => (
                      <option key={name} value={name}>
                        {name}
                      </option>
                    ))}
                    {!names.includes(column) && <option value={column}>{column}</option>}
                  </select>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
