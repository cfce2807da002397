// Draws the description of the interface that /openapi.json gives.
import { $, make } from "./util.js";

const example = (schema) => {
  if (schema.example !== undefined) return schema.example;
  if (schema.enum) return schema.enum[0];
  return { integer: 0, number: 0, string: "", array: [], boolean: false }[schema.type] ?? null;
};

function body(schema) {
  return Object.fromEntries(Object.entries(schema.properties ?? {}).filter(([name]) => name !== "record").map(([name, field]) => [name, example(field)]));
}

function fields(schema) {
  return make("table", { class: "runs" }, make("tbody", {}, ...Object.entries(schema.properties ?? {}).map(([name, field]) =>
    make("tr", {}, make("th", { scope: "row" }, make("code", {}, name)), make("td", {}, field.enum ? field.enum.join(", ") : [field.type].flat().join(" or ")), make("td", { class: "wrap" }, field.description ?? "")))));
}

function entry(path, method, about) {
  const sent = about.requestBody?.content["application/json"].schema;
  const got = about.responses["200"].content["application/json"].schema;
  const call = sent
    ? `curl -s ${location.origin}${path} -H 'content-type: application/json' \\\n  -d '${JSON.stringify(body(sent))}'`
    : `curl -s ${location.origin}${path}`;
  const parts = [make("div", { class: "card-head" }, make("h2", {}, make("span", { class: `verb ${method}` }, method.toUpperCase()), make("code", {}, path)), make("span", { class: "note" }, about.summary)), make("pre", {}, call)];
  if (sent) parts.push(make("details", {}, make("summary", {}, "What it takes"), fields(sent)));
  if (Object.keys(got.properties ?? {}).length) parts.push(make("details", {}, make("summary", {}, "What it answers"), fields(got)));
  return make("section", { class: "card" }, ...parts);
}

const description = await (await fetch("/openapi.json")).json();
$("api-about").textContent = description.info.description;
$("api-list").replaceChildren(...Object.entries(description.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, about]) => entry(path, method, about))));
