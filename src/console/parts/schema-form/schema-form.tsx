import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import type { CollectionField, FieldShape } from '../../collection.js';
import { describeRules, describeType, useFormPlace, type InputProps } from './form-place.js';
import { RefPicker, ChoicesInput, TagsInput } from './pickers.js';
import { DateInput, EnumInput, JsonInput, NumberInput, SwitchInput, TextInput } from './scalar-inputs.js';

type JsonObject = Record<string, unknown>;

/** An input for each field of a schema; values of fields that it does not name stay as they are. */
export function SchemaFields({
  fields,
  value,
  path = '',
  onChange,
}: {
  fields: readonly CollectionField[];
  value: JsonObject;
  /** Before the names of the fields, with its dot. */
  path?: string;
  onChange: (next: JsonObject) => void;
}) {
  const set = (name: string, next: unknown): void => {
    const { [name]: _old, ...others } = value;
    onChange(next === undefined ? others : { ...value, [name]: next });
  };
  return (
    <>
      {fields.map((field) => (
        <FieldInput
          key={field.name}
          name={field.name}
          path={path + field.name}
          field={field}
          value={value[field.name]}
          onChange={(next) => set(field.name, next)}
        />
      ))}
    </>
  );
}

type LeafInput = (props: InputProps) => ComponentChildren;

/** The input of a value, by its type; null for what has inputs of its own inside. */
function leafOf({ type, items, enum: choices }: FieldShape, value: unknown): LeafInput | null {
  if (choices) return EnumInput;
  if (type === 'Boolean') return SwitchInput;
  if (!fits(type, value)) return JsonInput;
  if (type === 'String') return TextInput;
  if (type === 'Number') return NumberInput;
  if (type === 'Date') return DateInput;
  if (type === 'Ref') return RefPicker;
  if (type !== 'Array') return JsonInput;
  if (items?.enum) return ChoicesInput;
  if (items?.type === 'String' || items?.type === 'Number') return TagsInput;
  return items && items.type !== 'Array' && (items.type !== 'Object' || items.fields) ? null : JsonInput;
}

/** False for a stored value of another type, which is shown as it is. */
function fits(type: string, value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (type === 'Number') return typeof value === 'number';
  if (type === 'Array') return Array.isArray(value);
  if (type === 'Object') return typeof value === 'object' && !Array.isArray(value);
  return typeof value === 'string';
}

function FieldInput({
  name,
  path,
  field,
  value,
  onChange,
  onRemove,
}: {
  name: string;
  path: string;
  field: FieldShape & Partial<CollectionField>;
  value: unknown;
  onChange: (next: unknown) => void;
  /** Of an item of a list. */
  onRemove?: () => void;
}) {
  const id = useId();
  const { errors } = useFormPlace();
  const error = errors.get(path);
  const rules = describeRules(field);
  const remove = onRemove && (
    <button type="button" class="small quiet" aria-label={`Remove ${name}`} onClick={onRemove}>
      Remove
    </button>
  );
  const nested = field.type === 'Object' && field.fields && fits('Object', value);
  const Leaf = nested ? null : leafOf(field, value);
  if (Leaf) {
    const described = [rules !== '' && `${id}-rules`, error !== undefined && `${id}-error`].filter(Boolean).join(' ');
    return (
      <div class={error === undefined ? 'field' : 'field wrong'}>
        <div class="field-head">
          <label for={id}>{name}</label>
          <Marks field={field} />
          {remove}
        </div>
        <Leaf
          id={id}
          path={path}
          shape={field}
          value={value}
          isRequired={field.required === true}
          describedBy={described === '' ? undefined : described}
          onChange={onChange}
        />
        <Notes id={id} rules={rules} error={error} />
      </div>
    );
  }
  return (
    <fieldset class="field nested">
      <legend>
        {name}
        <Marks field={field} /> {remove}
      </legend>
      {nested ? (
        <SchemaFields
          fields={field.fields!}
          value={(value ?? {}) as JsonObject}
          path={`${path}.`}
          onChange={(next) => onChange(Object.keys(next).length === 0 ? undefined : next)}
        />
      ) : (
        <ListInput name={name} path={path} shape={field.items!} value={value} onChange={onChange} />
      )}
      <Notes id={id} rules={rules} error={error} />
    </fieldset>
  );
}

function Marks({ field }: { field: FieldShape & Partial<CollectionField> }) {
  return (
    <>
      {field.required && <span aria-hidden="true"> *</span>}
      <span class="type">{describeType(field)}</span>
    </>
  );
}

/** The rules of a field, and which one is broken. */
function Notes({ id, rules, error }: { id: string; rules: string; error: string | undefined }) {
  return (
    <>
      {rules !== '' && (
        <span class="hint" id={`${id}-rules`}>
          {rules}
        </span>
      )}
      {error !== undefined && (
        <span class="field-error" id={`${id}-error`} role="alert">
          {error}
        </span>
      )}
    </>
  );
}

/** Items of a list, each with inputs of its own. */
function ListInput({
  name,
  path,
  shape,
  value,
  onChange,
}: {
  name: string;
  path: string;
  shape: FieldShape;
  value: unknown;
  onChange: (next: unknown) => void;
}) {
  const { isFixed } = useFormPlace();
  const items = Array.isArray(value) ? (value as unknown[]) : [];
  return (
    <>
      {items.map((item, at) => (
        <FieldInput
          key={at}
          name={`${name} ${at + 1}`}
          path={`${path}.${at}`}
          field={shape}
          value={item ?? undefined}
          onChange={(next) => onChange(items.with(at, next ?? null))}
          {...(!isFixed && { onRemove: () => onChange(items.filter((_, index) => index !== at)) })}
        />
      ))}
      {!isFixed && (
        <button type="button" class="small" onClick={() => onChange([...items, shape.type === 'Object' ? {} : null])}>
          Add to {name}
        </button>
      )}
    </>
  );
}
