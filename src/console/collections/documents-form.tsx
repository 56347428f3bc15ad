import { useState } from 'preact/hooks';
import { readUniqueText } from '../../exchange/unique-text.js';
import { Choice, Field, TextArea, Tick } from '../parts/form.js';
import { writeUnique, type CollectionSettings, type Unique } from './use-settings.js';

interface Edited {
  settings: CollectionSettings;
  onSettings: (next: CollectionSettings) => void;
}

/** What cannot be read is sent as it is, and rejected by the server. */
function readUnique(line: string): Unique {
  const read = readUniqueText(line) ?? { fields: [line], where: {} };
  return Object.keys(read.where).length > 0 ? read : read.fields;
}

/** Fields that are unique together, one line each. */
export function UniquesField({ settings, onSettings }: Edited) {
  const [text, setText] = useState((settings.uniques ?? []).map(writeUnique).join('\n'));
  return (
    <TextArea
      label="Unique together, one per line: board,user, or staff,at where status=booked"
      rows={2}
      value={text}
      onChange={(next) => {
        setText(next);
        const lines = next.split('\n').filter((line) => line.trim() !== '');
        onSettings({ ...settings, uniques: lines.map(readUnique) });
      }}
    />
  );
}

/** When documents go by themselves. */
export function ExpireFields({ settings, onSettings }: Edited) {
  const { expire = null, fields } = settings;
  const dates = fields.filter(({ type, name }) => type === 'Date' && name !== '').map(({ name }) => name);
  const moments = [...new Set([...dates, 'createdAt', 'updatedAt', ...(expire ? [expire.field] : [])])];
  const set = (next: CollectionSettings['expire']): void => onSettings({ ...settings, expire: next ?? null });
  return (
    <div class="row">
      <Choice
        label="Documents expire"
        value={expire?.field ?? ''}
        choices={[['', 'never'], ...moments.map((name) => [name, `by ${name}`] as const)]}
        onChange={(field) => set(field === '' ? null : { ...expire, field })}
      />
      {expire && (
        <>
          <Field
            label="Time after that, such as 30d"
            autocomplete="off"
            value={expire.after ?? ''}
            onChange={(text) => {
              const { after: _, ...others } = expire;
              set(text === '' ? others : { ...others, after: text });
            }}
          />
          <Tick
            label="permanently, not to the trash"
            value={expire.permanent ?? false}
            onChange={(isSet) => {
              const { permanent: _, ...others } = expire;
              set(isSet ? { ...others, permanent: true } : others);
            }}
          />
        </>
      )}
    </div>
  );
}
