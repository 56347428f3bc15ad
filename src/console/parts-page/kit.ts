import { jsx } from 'preact/jsx-runtime';
import { useState } from 'preact/hooks';
import { pathTo } from '../api-paths.js';
import { Refusal } from '../api.js';
import { Copy, Dialog, NoteLine, say, Trouble } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Confirm, PasswordAgain, Secret } from '../parts/confirm.js';
import { DrawerForm } from '../parts/drawer-form.js';
import { Drawer } from '../parts/drawer.js';
import { Filters, Pager } from '../parts/filters.js';
import { Choice, Field, Form, PasswordField, TextArea, Tick } from '../parts/form.js';
import { Icon, ICONS } from '../parts/icon.js';
import { JsonEditor } from '../parts/json-editor.js';
import { Empty, PageHead } from '../parts/page-head.js';
import { Plot } from '../parts/plot.js';
import { PullDown } from '../parts/pull-down.js';
import { FormContext } from '../parts/schema-form/form-place.js';
import { SchemaFields } from '../parts/schema-form/schema-form.js';
import { comboProps, Suggestions } from '../parts/schema-form/suggestions.js';
import { List, Pages, Table } from '../parts/table.js';
import { Usage } from '../parts/usage.js';
import { linkHere, place } from '../routes.js';

/**
 * What the page of parts is made of. Its code is given this and imports none of it: what two scripts import, the build
 * puts into a third one, for which every page would wait.
 */
export const KIT = {
  ...{ jsx, useState, pathTo, linkHere, place, Refusal },
  ...{ Copy, Dialog, NoteLine, say, Trouble, Commands, Confirm, PasswordAgain, Secret, DrawerForm, Drawer },
  ...{ Filters, Pager, Choice, Field, Form, PasswordField, TextArea, Tick, Icon, ICONS, JsonEditor, Empty, PageHead },
  ...{ Plot, PullDown, FormContext, SchemaFields, comboProps, Suggestions, List, Pages, Table, Usage },
};
export type Kit = typeof KIT;
