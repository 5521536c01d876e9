export {};
//# sourceMappingURL=suite.js.map