/** @jsxImportSource . */
import { kit } from './given.js';
import { Live } from './live.js';
import { BROKEN, FIELDS, LONG, nothing, WRITTEN } from './samples.js';

export function FormFields({ theme }: { theme: string }) {
  return (
    <kit.Form class="stack" onSubmit={nothing}>
      <Live
        first="shop"
        show={(value, set) => <kit.Field label="A line" value={value} hint="What it is for." onText={set} />}
      />
      <Live
        first=""
        show={(value, set) => (
          <kit.Field label="A line that is empty" value={value} placeholder="Of the kind" onText={set} />
        )}
      />
      <Live
        first="twelve"
        show={(value, set) => <kit.Field label="A whole number, mistaken" value={value} isWhole onText={set} />}
      />
      <Live first="secret" show={(value, set) => <kit.PasswordField label="A password" value={value} onText={set} />} />
      <Live
        first={'One a line\nAnother'}
        show={(value, set) => <kit.TextArea label="Several lines" rows={3} value={value} onText={set} />}
      />
      <Live
        first="viewer"
        show={(value, set) => (
          <kit.Choice
            label="A choice"
            value={value}
            choices={[
              ['owner', 'Owner'],
              ['viewer', 'Viewer'],
            ]}
            onChoose={set}
          />
        )}
      />
      <Live first={true} show={(value, set) => <kit.Tick label="To tick" isOn={value} onTick={set} />} />
      <label>
        A file
        <input type="file" />
      </label>
      <Live
        first={1}
        show={(at, setAt) => (
          <label>
            Found while typing
            <span class="ref">
              <input {...kit.comboProps(`found-${theme}`, true, at)} value="ch" />
              <kit.Suggestions
                id={`found-${theme}`}
                label={`Found, ${theme}`}
                at={at}
                items={['chair', 'chest', LONG].map((key) => ({ key, shown: key }))}
                onChoose={setAt}
              />
            </span>
          </label>
        )}
      />
    </kit.Form>
  );
}

export const MistakenFields = () => <SchemaForm isFixed={false} />;
export const FixedFields = () => <SchemaForm isFixed />;

function SchemaForm({ isFixed }: { isFixed: boolean }) {
  return (
    <Live<Record<string, unknown>>
      first={WRITTEN}
      show={(value, set) => (
        <kit.FormContext.Provider
          value={{ collections: [], isFixed, errors: isFixed ? new Map() : BROKEN, report: nothing }}
        >
          <form class="schema-form">
            <kit.SchemaFields fields={FIELDS} value={value} onChange={set} />
          </form>
        </kit.FormContext.Provider>
      )}
    />
  );
}
